/**
 * The quirks of vhost-device-vsock towards a guest, in isolation, so that their end is noticed: a failing test here means that the
 * installed version has fixed a quirk of shared/agent-protocol/device-quirks.ts, and is then its `mended`.
 */
import { chmodSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { CONNECTION_LOST } from "../../../daemon/host/guest-link/connection.ts";
import { MAX_WRITE_BYTES } from "../../../shared/agent-protocol/device-quirks.ts";
import { LONG, until, withGuests } from "../../harness/guests.ts";

const ROOM = "quirks";
const PORT = 777;
/** About one in eighty guests is not notified; each takes a tenth of a second. */
const MAX_TURNS = 600;
const WRITING_MS = 50;
const STOPPED_MS = 200;

if (!LONG)
  console.log(
    "quirks of the vsock device: left out, because they depend only on its version; ROOMD_TEST_LONG=1 tests them",
  );

describe.skipIf(!LONG)("long tests", () => {
  withGuests("a guest's vsock device", { env: { ROOMD_VSOCK_TRANSPORT: "vhost-user" } }, (guests) => {
    let sandboxId = "";
    const sockets = () => join(guests.daemon.runtimeDir, "g", sandboxId);
    /** The output of a program in the guest; on an emulated guest next to others its start alone takes a while. */
    const python = async (...lines: string[]): Promise<string> => {
      const program = ["import socket", "link = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)", ...lines].join(
        "\n",
      );
      const { stdout } = await guests.daemon.exec(ROOM, "ann", {
        argv: ["python3", "-c", program],
        timeout_ms: 120_000,
      });
      return stdout.trim();
    };

    beforeAll(async () => {
      await guests.daemon.room(ROOM);
      sandboxId = (await guests.daemon.sandbox(ROOM, "ann", guests.cid())).sandbox_id;
    });

    /** The listener on a port of the host, as the device forwards it. */
    function listen(onOpen: (socket: Bun.Socket<undefined>) => void = () => {}) {
      const path = join(sockets(), "vsock", `guest.sock_${PORT}`);
      rmSync(path, { force: true });
      const heard = { bytes: 0, connections: [] as Bun.Socket<undefined>[] };
      const listener = Bun.listen<undefined>({
        unix: path,
        socket: {
          open: (socket) => {
            heard.connections.push(socket);
            onOpen(socket);
          },
          data: (_, bytes) => {
            heard.bytes += bytes.byteLength;
          },
        },
      });
      chmodSync(path, 0o777);
      const stop = () => {
        listener.stop(true);
        rmSync(path, { force: true });
      };
      return { heard, stop };
    }

    test("silent_connect: gives no answer to a connection without a listener", async () => {
      const output = await python(
        "link.settimeout(3)",
        `try: link.connect((2, ${PORT}))`,
        "except TimeoutError: print('no answer')",
        "except OSError as error: print(error)",
      );
      expect(output).toBe("no answer");
    }, 150_000);

    test("split_packets_lost: loses a packet in several descriptors, and delivers one that fits into one", async () => {
      const { heard, stop } = listen();
      try {
        const send = (length: number) =>
          python(`link.connect((2, ${PORT}))`, `link.send(b'x' * ${length})`, "import time; time.sleep(1)");
        await send(MAX_WRITE_BYTES);
        expect(heard.bytes).toBe(MAX_WRITE_BYTES);
        await send(60_000);
        expect(heard.bytes).toBeLessThan(MAX_WRITE_BYTES + 60_000);
      } finally {
        stop();
      }
    }, 180_000);

    test("end_untold: does not always inform a writing guest of the end of its connection", async () => {
      const { stop } = listen((socket) => void setTimeout(() => socket.terminate(), WRITING_MS));
      try {
        const output = await python(
          `for turn in range(${MAX_TURNS}):`,
          "    link = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
          "    link.settimeout(3)",
          `    link.connect((2, ${PORT}))`,
          "    try:",
          "        while True: link.send(b'x' * 8192)",
          "    except TimeoutError: print('waits since turn', turn); break",
          "    except OSError: pass",
        );
        console.log(`guests that were writing: ${output || "all were informed"}`);
        expect(output).toMatch(/^waits/);
      } finally {
        stop();
      }
    }, 180_000);

    test("lost_while_stopped: stops serving its guest after traffic that arrived while QEMU was stopped", async () => {
      const { daemon } = guests;
      const { heard, stop } = listen();
      const lost = () => daemon.logged({ message: CONNECTION_LOST }).length > 0;
      try {
        await daemon.exec(ROOM, "ann", {
          command: `(setsid python3 -c "import socket, time; link = socket.socket(40, 1); link.connect((2, ${PORT})); time.sleep(600)" >/dev/null 2>&1 &)`,
        });
        const socket = await until("the guest has connected", () => heard.connections.at(-1), 60_000);
        const qmp = await machine(join(sockets(), "vm", "qmp2.sock"));
        expect(lost()).toBe(false);
        await qmp("stop");
        socket.write("something");
        socket.flush();
        await Bun.sleep(STOPPED_MS);
        await qmp("cont");
        // The agent, which did nothing, answers no more.
        await until("the guest's connection is lost", lost, 60_000);
      } finally {
        stop();
      }
    }, 180_000);
  });

  /** QEMU's second monitor. */
  async function machine(path: string): Promise<(command: string) => Promise<void>> {
    const socket = connect(path);
    let received = "";
    let answers = 0;
    socket.on("data", (bytes) => {
      received += String(bytes);
      answers = received.split('"return"').length - 1;
    });
    const execute = async (command: string) => {
      const before = answers;
      socket.write(`${JSON.stringify({ execute: command })}\n`);
      await until(`the answer to ${command}`, () => answers > before);
    };
    await execute("qmp_capabilities");
    return execute;
  }
});
