"""A right answer, as a person or a model would write it, for each checked prompt whose answer is short or exact."""

from __future__ import annotations

import json
from typing import Any

RIGHT: dict[str, str] = {
    "code-short-02": "SELECT date_trunc('month', placed_on) AS month, SUM(total) AS revenue\nFROM orders\n"
    "WHERE placed_on >= '2025-01-01' AND placed_on < '2026-01-01'\nGROUP BY 1\nORDER BY 1 DESC;",
    "code-short-04": "```ts\ntype Invoice = {\n  id: string;\n  lines: { description: string; quantity: number; "
    "unitPrice: number }[];\n  paidOn?: string;\n};\n```",
    "code-short-05": "`['birch', 'cedar'] 2`: two trees have five letters, and there are two lengths in all.",
    "code-short-06": "```js\n  return items.slice(from);\n```",
    "maths-short-01": "0.7 of the price is 84, so it was 84 / 0.7 = **120 euros**.",
    "maths-short-02": "f'(x) = 3x^2 - 4 - 2/x^2, so f'(1) = 3 - 4 - 2 = -3.",
    "maths-short-03": r"It factors as (x - 3)(2x + 1) = 0, so $x = 3$ or $x = -\frac{1}{2}$.",
    "maths-short-04": r"Both must be odd: $\frac{1}{2} \cdot \frac{1}{2} = \frac{1}{4}$.",
    "maths-short-05": "100 is 14 weeks and 2 days, so two days after Wednesday: a Friday.",
    "maths-short-06": "48 - 8 = 40 litres a minute, 1200 / 40 = 30 minutes.",
    "maths-long-05": "a + c + k = n ... so there were 246 adults and 64 children.\n\n32",
    "maths-long-06": "560 in all, 96 hold both of them, so\n\n**464**",
    "json-short-01": '{"bicycle": "blue three-speed", "faults": ["brake cable gone", "rear tyre flat"], '
    '"needed_by": "Friday", "limit_eur": 45, "call_first": false}',
    "json-short-02": 'Here it is:\n```json\n{"pet": "Olive", "date": "05-14", "time": "09:20", "treatment": '
    '"dental cleaning", "fasting": true, "cost_yen": 7500}\n```',
    "json-short-03": '[{"item": "San Marzano tomatoes", "quantity": 3, "unit": "crate", "unit_price": 11.5}, '
    '{"item": "rice", "quantity": 5, "unit": "kg", "unit_price": 2.1}, '
    '{"item": "lemons", "quantity": 2, "unit": "box", "unit_price": 8.0}]',
    "json-short-04": '{"topic": "login", "platform": "android", "wants_refund": false, "mood": "angry", '
    '"since": "Monday"}',
    "json-short-05": '{"time": "06:40", "temperature_c": -11, "wind_from": "north-west", "wind_kmh_max": 40, '
    '"fresh_snow_cm": 18, "pressure_hpa": null}',
    "json-short-06": '{"trade": "joinery", "place": "Ghent", "hours_per_week": 32, "licence": "B", '
    '"experience_required": false, "gross_monthly_eur": 2450, "languages": ["Dutch", "French"], "holidays": null}',
    "long-input-short-01": "Selling wine needs a licence from the town (clause 6), applied for four weeks before. "
    "Amplified music must end at 1:30 (clause 5); the band may go on unplugged.",
    "long-input-short-02": "Half came from a loan, a quarter from the state and a quarter from a levy on land near "
    "the station. The first ticket was a plastic card, and people paid by the day had to queue to charge one ride.",
    "long-input-short-03": "The renewal of the water pipe was put off until the autumn after next, and the toilets "
    "of the clubhouse until the spring work days.",
    "long-input-short-04": "The drainage board wrote in a letter that it would not repair the bank any more. "
    "Today glasswort and sea aster grow there.",
    "long-input-short-05": "Yes, you may do it yourselves. Take the tank out and check its valve, put it back, then "
    "let the hot water run for up to a minute; three tries at most.",
    "long-input-short-06": "rebuild-thumbnails filled it. Bookings failed from 03:52:27. It ended when on-call "
    "stopped the job and deleted its files.",
    "infill-short-01": "エレベーターは木曜日まで故障中です。東側の階段をご利用ください。"
    "重い荷物のお手伝いが必要な場合は、フロントのベルを鳴らしてください。",
    "infill-short-02": "The key is under the third flowerpot from the left. Please water the tomatoes only in the "
    "evening, and don't be surprised by the dog: he barks, but he is pleased.",
    "infill-short-03": "The library is closed tomorrow because of the holiday. You can return books in the blue box "
    "next to the door; no late fine will be charged until Monday.",
    "infill-short-04": "Yesterday's match was cancelled because of rain. It will now be on Sunday at ten in the "
    "morning. The same tickets are valid.",
    "infill-short-05": "`letters[::-1]`",
    "tools-short-01": "Wrap it in a bag and two layers of cardboard, upright, and it will arrive whole.",
    "tools-short-02": '[{"name": "forecast", "arguments": {"place": "Aosta", "days": 3}}, '
    '{"name": "forecast", "arguments": {"place": "Chamonix", "days": 3}}]',
    "tools-short-03": '{"name": "convert", "arguments": {"amount": 1850, "source": "ZAR", "target": "CHF"}}',
    "tools-short-04": '```json\n[{"name": "set_light", "arguments": {"room": "kitchen", "on": false, "brightness": '
    '0}},\n{"name": "set_light", "arguments": {"room": "hall", "on": true, "brightness": 30}},\n'
    '{"name": "set_blinds", "arguments": {"room": "bedroom", "closed_percent": 100}}]\n```',
    "tools-short-05": '{"name": "find_trains", "arguments": {"origin": "Voss", "destination": "Bergen", '
    '"date": "2027-06-03", "arrive_by": "14:00"}}',
    "tools-short-06": '<tool_call>{"name": "move_event", "arguments": {"event_id": "ev-52", "new_start": '
    '"2027-03-11T08:30"}}</tool_call>',
}


def _rota() -> str:
    who = [(1, "E", "Aylin"), (1, "L", "Bruno"), (1, "N", "Chidi"), (2, "E", "Aylin"), (2, "L", "Dao")]
    who += [(2, "N", "Chidi"), (3, "E", "Bruno"), (3, "L", "Dao"), (4, "E", "Bruno"), (4, "L", "Chidi")]
    who += [(4, "N", "Aylin")]
    hours = {"E": ("06:00", "14:00"), "L": ("14:00", "22:00"), "N": ("22:00", "06:00")}
    shifts: list[dict[str, Any]] = [
        {
            "person": person,
            "date": f"2027-02-{day:02d}",
            "start": hours[shift][0],
            "end": hours[shift][1],
            "ends_next_day": shift == "N",
        }
        for day, shift, person in who
    ]
    return json.dumps({"week_starts": "2027-02-01", "shifts": shifts})


def _cards() -> str:
    rows = [
        (["Oyelaran, Bisi"], "Rivers of the Plateau", "Ibadan", 1974, 212, "G4", "used", 1, True),
        (["Solheim, Marit"], "Handbook of Knots", "Bergen", None, 96, "T1", "good", 2, True),
        (["Haddad, Samir", "Costa, Inês"], "Bread of Three Shores", "Beirut", 1988, 304, "K2", "poor", 1, True),
        (["Pugh, E."], "Weather for Shepherds", "Aberystwyth", 1931, 140, "G1", "poor", 1, True),
        (["Nakamura, Rei"], "Small Bridges", "Kyoto", 2003, 88, "T3", "good", 1, True),
        (["Anonymous"], "A Sailor's Remedies", "Lisbon", 1902, 61, "M1", "poor", 1, False),
        (["Petrov, Ilya"], "Chess in Winter", "Sofia", 1969, 180, "S5", "used", 3, True),
    ]
    names = ("authors", "title", "place", "year", "pages", "shelf", "condition", "copies", "loan")
    return json.dumps({"cards": [dict(zip(names, row, strict=True)) for row in rows]}, ensure_ascii=False)


RIGHT["json-long-02"] = _rota()
RIGHT["json-long-04"] = _cards()
