"""Turns the test feed of JUnit's console launcher into one line per case, CLASS.METHOD. usage: cases.py FILE"""

import re
import sys

EVENT = re.compile(r"JUnit Jupiter > (.*) :: (STARTED|SUCCESSFUL|FAILED|ABORTED|SKIPPED)")


def name_of(path):
    """'JoinGroupRequestTest > testX(ClusterInstance) > [1] ...' -> 'JoinGroupRequestTest.testX'."""
    parts = [part.strip() for part in path.split(" > ")]
    if len(parts) < 2:
        return parts[0]
    return parts[0] + "." + re.split(r"[( ]", parts[1])[0]


def main():
    outcomes, reasons, running = {}, {}, None
    last = None
    for line in open(sys.argv[1], errors="replace"):
        event = EVENT.match(line)
        if event:
            name, state = name_of(event.group(1)), event.group(2)
            last = (name, state)
            if state == "STARTED":
                running = name
            else:
                running = None
                outcomes.setdefault(name, []).append(state)
        elif last and last[1] != "STARTED" and line.strip():
            reason = re.sub(r"^(=> )?(Exception|Reason): ", "", line.strip())[:220]
            reasons.setdefault((last[0], last[1]), reason)
            last = None
    if running:
        outcomes.setdefault(running, []).append("FAILED")
        reasons[(running, "FAILED")] = "no end within the time limit"
    for name in sorted(outcomes):
        states = outcomes[name]
        if "FAILED" in states:
            print("FAIL", name, reasons.get((name, "FAILED"), ""), f"({states.count('FAILED')} of {len(states)})")
        elif "SUCCESSFUL" in states:
            print("PASS", name)
        else:
            print("SKIP", name, reasons.get((name, states[0]), ""))


main()
