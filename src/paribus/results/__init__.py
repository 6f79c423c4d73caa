"""Results: reading, sealing, checking, comparing and citing runs, and the database made of them.

`run` says what a run is and where it lies; `seal` makes one out of its starts; `check` believes none of it; `compare`
sets two against each other behind `gates`; `build` writes the database of `tables`; `cite` and `strip` put numbers
and their conditions into words.
"""
