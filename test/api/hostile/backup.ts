/** Backups of the database concurrent with writes. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BINARY } from "../../harness/daemon.ts";
import { type Attack, call, each, keepCalling, makeAgent } from "../../harness/hostile/attack.ts";

export default {
  title: "backups beside writes, and the first commit after each",
  prepare: async (daemon) => {
    await daemon.room("r");
    await makeAgent(daemon, "r", "a");
    const message = { source: "b", destination: "a", payload: "x".repeat(60_000) };
    await each(900, 16, () => daemon.ok("POST", "/v1/rooms/r/messages", message));
    return daemon.env;
  },
  attack: async (target, count) => {
    void keepCalling(4, count, () =>
      call(target, "POST", "/v1/rooms/r/messages", { source: "b", topic: "none", payload: "x".repeat(60_000) }),
    );
    for (;;) {
      const home = mkdtempSync("/tmp/roomd-b-");
      const child = spawn(BINARY, ["backup", join(home, "b")], {
        env: target.prepared as Record<string, string>,
        stdio: "ignore",
      });
      const [code] = await once(child, "exit");
      count(`backup ${code}`);
      rmSync(home, { recursive: true });
    }
  },
} satisfies Attack;
