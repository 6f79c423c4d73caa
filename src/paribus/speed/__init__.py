"""Speed: loads on a server, what they show, and how sure it is.

`run` and `adhoc` measure; `trace` and `derive` read the raw outcomes; `metrics` holds one file a metric; `summarise`
makes the summaries of starts and runs; `statistics` and `speedup` are pure functions; `race` decides between decoders.
"""
