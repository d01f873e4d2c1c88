/** A guest stalled by disk errors: QEMU's error events, which come late, against its actual state. */
import { mkdtempSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectMachine } from "../../../../daemon/host/machine/machine.ts";

/** A monitor that sends events on demand, and reports that the guest is in this state. */
async function monitor(directory: string) {
  const said = { status: "running", commands: [] as string[] };
  const clients: Socket[] = [];
  const tell = (socket: Socket, message: object) => socket.write(`${JSON.stringify(message)}\n`);
  const qmp = createServer((socket) => {
    clients.push(socket);
    tell(socket, { QMP: {} });
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        const { execute, id } = JSON.parse(text.slice(0, end)) as { execute: string; id: number };
        text = text.slice(end + 1);
        said.commands.push(execute);
        tell(socket, { return: execute === "query-status" ? { status: said.status } : {}, id });
      }
    });
  });
  const console = createServer();
  const sockets = { qmp: join(directory, "q"), qmp_spare: join(directory, "s"), console: join(directory, "c") };
  await new Promise<void>((done) => qmp.listen(sockets.qmp, done));
  await new Promise<void>((done) => console.listen(sockets.console, done));
  return {
    said,
    sockets,
    event: (event: string, data = {}) => {
      for (const socket of clients) tell(socket, { event, data });
    },
    [Symbol.dispose]: () => {
      for (const server of [qmp, console]) server.close();
    },
  };
}

test("it is stalled exactly while QEMU has stopped it, for any earlier or later events", async () => {
  const directory = mkdtempSync(join(tmpdir(), "roomd-stall-"));
  using qemu = await monitor(directory);
  const { said, sockets, event } = qemu;
  const known = { name: "qemu", pid: process.pid, start_ticks: "0" };
  const machine = await connectMachine(known, { sockets, console_log: join(directory, "log") });
  const is = (stands: boolean) => machine.stalled.until((value) => value === stands, 5_000);

  // Stopped before the first word of the error.
  said.status = "io-error";
  event("STOP");
  await is(true);
  said.status = "running";
  await machine.unstall();
  expect([machine.stalled.value, said.commands]).toEqual([false, expect.arrayContaining(["cont"])]);

  // The late error event is from before: QEMU runs, and there is nothing to resume.
  event("BLOCK_IO_ERROR", { action: "stop" });
  await is(true);
  await machine.stopped();
  expect(machine.stalled.value).toBe(false);

  // A guest that stopped for another reason is not reported.
  said.status = "paused";
  event("STOP");
  await machine.stopped();
  expect(machine.stalled.value).toBe(false);
  machine.qmp.close();
});
