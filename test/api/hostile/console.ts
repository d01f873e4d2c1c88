/** Guests whose consoles have nothing but line feeds, and reads of their agents' lines. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import { agentOf, roomOf, ScaleGuests } from "../../bench/scale-guests.ts";
import { type Attack, call, keepCalling } from "../../harness/hostile/attack.ts";

const GUESTS = 2;
const READERS = 10;
const SEGMENT_BYTES = 1024 * 1024;

let guests: ScaleGuests | null = null;

export default {
  title: "10 readers of consoles of 2 MiB of line feeds",
  env: { ROOMD_ACCELERATION: "tcg", ROOMD_VSOCK_TRANSPORT: "vhost-user", ROOMD_POOL_SIZE: "0" },
  prepare: async (daemon) => {
    await daemon.room(roomOf(0));
    guests = new ScaleGuests(daemon);
    await guests.become(GUESTS);
    const paths = makePaths({ data_dir: daemon.dataDir, runtime_dir: daemon.runtimeDir });
    const { items } = await daemon.ok("GET", `/v1/rooms/${roomOf(0)}/sandboxes`);
    for (const { sandbox_id } of items) {
      const { console_log } = paths.sandbox(sandbox_id);
      mkdirSync(console_log, { recursive: true });
      for (const from of [0, SEGMENT_BYTES])
        writeFileSync(join(console_log, `${String(from).padStart(15, "0")}.log`), "\n".repeat(SEGMENT_BYTES));
    }
  },
  finish: async () => await guests?.[Symbol.asyncDispose](),
  attack: async (target, count) =>
    await keepCalling(READERS, count, (n) =>
      call(target, "GET", `/v1/rooms/${roomOf(0)}/sandboxes/${agentOf(n % GUESTS)}/logs?source=agent`),
    ),
  expected: ["200"],
} satisfies Attack;
