/** A QEMU that sends invalid data next to a working one: its guest ends, and the others are not affected. */
import { chownSync, renameSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { processesOf, untilState, withGuests } from "../harness/guests.ts";

withGuests("a QEMU with invalid QMP output", {}, (guests) => {
  test("fails alone at adoption: the service and the other guests continue", async () => {
    const { daemon } = guests;
    await daemon.room("r");
    const { sandbox_id } = await daemon.sandbox("r", "taken", guests.cid());
    const other = await daemon.sandbox("r", "other", guests.cid());
    await daemon.end("SIGKILL");
    // In the place of its monitor, as it could make one itself.
    const monitor = join(daemon.runtimeDir, "g", sandbox_id, "vm", "qmp.sock");
    renameSync(monitor, `${monitor}.real`);
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.write('{"QMP": {}}\n{"return": {}, "id": 1}\n{"event": "STOP", "data": [[[');
      for (let times = 0; times < 64; times++) socket.write("[".repeat(65_536));
    });
    await new Promise<void>((done) => server.listen(monitor, done));
    const { uid, gid } = statSync(`${monitor}.real`);
    chownSync(monitor, uid, gid);
    try {
      await daemon.serve();
      const { pid } = daemon;
      const failed = await untilState(daemon, "r", "taken", "failed");
      expect(failed.exit).toMatchObject({ cause: "vmm_crash" });
      expect(failed.status.message).toMatch(/bytes/);
      expect(processesOf(daemon, "qemu", sandbox_id)).toEqual([]);
      expect(await daemon.sh("r", "other", "echo still here")).toBe("still here");
      expect(daemon.pid).toBe(pid);
      expect(processesOf(daemon, "qemu", other.sandbox_id)).toHaveLength(1);
      expect(daemon.log).not.toMatch(/uncaught|unhandled/);
    } finally {
      server.close();
      await daemon.ok("DELETE", "/v1/rooms/r?drive=delete");
    }
  });
});
