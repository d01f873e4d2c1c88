/** Room backup files with rows that are costly to parse. */
import { type Attack, answeredBy, keepCalling } from "../../harness/hostile/attack.ts";
import { withFile } from "../../harness/room-file.ts";
import { bearer } from "../calls.ts";

const ROWS = 200;
/** As many of an organization's as are read at a time. */
const FILES = 2;
/** Longer than there are messages: its size is no other number of theirs. */
const PAYLOAD = "PAYLOAD".repeat(100);

/** The state with a payload that is costly to parse in each of its messages. */
function withPayloads(state: string): string {
  const payload = `[${"[],".repeat(21_000)}[]]`;
  const cells: Record<string, unknown> = { [JSON.stringify(PAYLOAD)]: payload, [PAYLOAD.length + 2]: payload.length };
  return state
    .split("\n")
    .flatMap((line) => {
      if (!line.includes(PAYLOAD)) return [line];
      const { rows, some } = JSON.parse(line) as { rows: number; some: (string | number | null)[][] };
      return some.map((row) => JSON.stringify({ rows, some: [row.map((cell) => cells[String(cell)] ?? cell)] }));
    })
    .join("\n");
}

export default {
  title: "room files with 200 rows of 64 KB of empty arrays",
  mostP99Ms: 35,
  prepare: async (daemon) => {
    await daemon.room("source");
    const messages = Array.from({ length: ROWS }, () => ({ source: "b", topic: "none", payload: PAYLOAD }));
    await daemon.ok("POST", "/v1/rooms/source/messages/batch", { messages });
    const response = await fetch(`${daemon.url}/v1/rooms/source/backup`, { headers: bearer(daemon.apiKey) });
    return Buffer.from(await response.bytes()).toString("base64");
  },
  attack: async ({ url, key, prepared }, count) => {
    const file = withFile(Buffer.from(String(prepared), "base64"), "state", withPayloads);
    await keepCalling(FILES, count, async (n) => {
      const response = await fetch(`${url}/v1/rooms/brought-${n}/backup`, {
        method: "PUT",
        headers: bearer(key),
        body: new Uint8Array(file),
      });
      return await answeredBy(response);
    });
  },
} satisfies Attack;
