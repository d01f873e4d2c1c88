/** `roomd waits`: which agents of a room wait for which, cycles of waits first. */

import type { Command } from "commander";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { roomWaits } from "../../../../shared/api/overview/overview.ts";
import { paint, printable } from "../../kit/output.ts";
import { columns, verb } from "../../kit/verb.ts";

const MAX_NAMES = 5;

export const waitsCommand = (): Command =>
  verb(roomWaits, "waits <room>", "print which agents wait for which: replies, barriers, messages, commands", {
    examples: ["roomd waits build-42", "roomd waits build-42 --json | jq '.cycles[].text'"],
    notes: ["Deadlocks are listed first: agents that wait for each other, none of which can continue by itself."],
    lines: ({ waits, cycles, text, truncated }) =>
      waits.length === 0
        ? [printable(text)]
        : [
            ...cycles.map((cycle) => paint("red", printable(cycle.text))),
            ...waitLines({ items: waits }),
            ...(truncated ? [paint("dim", "there are more waits")] : []),
          ],
  });

type RoomWait = OutputOf<typeof roomWaits>["waits"][number];

const waitLines = columns<RoomWait>(
  ["AGENT", ({ agent_id }) => agent_id],
  ["WAITS FOR", ({ type }) => type],
  ["ID", ({ id }) => id],
  [
    "ON",
    ({ on }) => on.slice(0, MAX_NAMES).join(" ") + (on.length > MAX_NAMES ? ` and ${on.length - MAX_NAMES} more` : ""),
  ],
  ["SINCE", ({ since }) => since],
  ["NOW", ({ held }) => (held ? "yes" : "no")],
  ["ABOUT", ({ about }) => about],
);
