/**
 * Many guests simulated by one process, as a daemon sees QEMU and the agent of each. Argument: a file with PlayedGuests. Prints "asking"
 * once all are ready. A number on its standard input is the rate in messages per second that they send to their rooms from then on, in
 * turn. When it exits, so do the processes that represent theirs.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { openSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import type { PlayedGuests } from "../scale-guests.ts";
import { PlayedAgent } from "./played-agent.ts";
import { playMachine } from "./played-machine.ts";

const TICK_MS = 10;

const { data_dir, runtime_dir, line, guests } = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as PlayedGuests;
const paths = makePaths({ data_dir, runtime_dir });
// The process keeps its write end open: a named pipe needs a writer before it is opened for reading.
openSync(line, "r+");
const reading = openSync(line, "r");
const agents: PlayedAgent[] = [];
for (const { sandbox_id, guest_cid } of guests) {
  const own = paths.sandbox(sandbox_id);
  const [nonce, secret] = [randomBytes(32).toString("hex"), randomBytes(32).toString("hex")];
  await playMachine(own, { sandbox_id, guest_cid, uuid: randomUUID(), nonce, secret }, reading);
  const agent = new PlayedAgent(own.vsock, { guest_cid, nonce });
  agents.push(agent);
  void agent.keepLinked();
}

let sentCount = 0;
let perSecond = 0;
let since = performance.now();
const input = createInterface({ input: process.stdin });
input.on("line", (text) => {
  [perSecond, since, sentCount] = [Number(text), performance.now(), 0];
});
// The benchmark has ended, however it did.
input.on("close", () => process.exit());
setInterval(() => {
  const due = ((performance.now() - since) / 1000) * perSecond;
  for (; sentCount < due; sentCount++) {
    const index = sentCount % agents.length;
    const { room_id = "", agent_id = "" } = guests[index] ?? {};
    void agents[index]?.send(room_id, agent_id);
  }
}, TICK_MS);
console.log("asking");
