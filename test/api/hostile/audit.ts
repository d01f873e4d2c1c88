/** Reads of a long audit chain: its records, summary, verification and timeline, and concurrently the list of agents. */
import { type Attack, call, each, keepCalling } from "../../harness/hostile/attack.ts";

const RECORDS = 20_000;
const READERS = 8;

export default {
  title: "8 readers each of summary, verify, timeline, audit and agents over 20,000 records",
  env: { ROOMD_AUDIT_RECORDS_PER_DAY: "100000000" },
  prepare: async (daemon) => {
    await daemon.room("r");
    const messages = Array.from({ length: 100 }, () => ({ source: "b", topic: "none", payload: 1 }));
    await each(RECORDS / messages.length, 4, () => daemon.ok("POST", "/v1/rooms/r/messages/batch", { messages }));
  },
  attack: async (target, count) => {
    const paths = ["/audit/summary", "/audit/verify", "/timeline", "/audit", "/agents"];
    await keepCalling(READERS * paths.length, count, (_, lane) =>
      call(target, "GET", `/v1/rooms/r${paths[lane % paths.length]}`),
    );
  },
} satisfies Attack;
