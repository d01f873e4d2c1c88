/**
 * Benchmark of exposed ports: the same server in a sandbox, through its port; in the guest, with a direct connection by curl; and on the
 * host, directly. The cost of the path is `get` minus `in_guest_get`; the guest's own slowness is `in_guest_get` minus `direct_get`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import { ExposedPort, PortSocket } from "../harness/exposed-port.ts";
import { until } from "../harness/guests.ts";
import { inLanes, megabytesPerSecond, takeTurns } from "./load/sampling.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 20;
const BODY_BYTES = 64 * 1024 ** 2;
/** Bodies take seconds, small calls milliseconds. */
const SMALL_FOR_EACH_BODY = 5;
const LANES = 16;
const SERVER = join(import.meta.dirname, "../fixtures/port-server.py");

export async function benchPorts({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true });
  await daemon.room("bench");
  await daemon.sandbox("bench", "worker", GUEST_CID_MIN);
  const port = await ExposedPort.expose(daemon, "bench/sandboxes/worker", { port: 8000 });
  await port.serve();
  await using direct = await LocalServer.start();

  const body = new Uint8Array(BODY_BYTES);
  const done = async (answer: Promise<Response>) => {
    const { status, body: bytes } = await answer;
    if (status !== 200) throw new Error(`answered ${status}`);
    for await (const _ of bytes as unknown as AsyncIterable<Uint8Array>);
  };
  /** Time of the server alone, as curl in the same guest measures it. */
  const inGuest = { get: [] as number[], down: [] as number[] };
  const curl = async (path: string) => {
    const seconds = await daemon.sh(
      "bench",
      "worker",
      `curl -s -o /dev/null -w '%{time_total}' 127.0.0.1:8000/${path}`,
    );
    return Number(seconds) * 1000;
  };
  const small = await takeTurns(count * SMALL_FOR_EACH_BODY, {
    in_guest: async (round) => {
      const ms = await curl("x");
      if (round >= 0) inGuest.get.push(ms);
    },
    get: () => done(port.fetch("x")),
    direct_get: () => done(fetch(`${direct.url}x`)),
    api_health: () => done(fetch(`${daemon.url}/health`)),
  });
  const echoed = async (client: PortSocket) => {
    client.socket.send("hello");
    if ((await client.next()) !== "hello") throw new Error("another message came back");
  };
  const large = await takeTurns(count, {
    in_guest: async (round) => {
      const ms = await curl(`bytes?n=${BODY_BYTES}`);
      if (round >= 0) inGuest.down.push(ms);
    },
    down: () => done(port.fetch(`bytes?n=${BODY_BYTES}`)),
    direct_down: () => done(fetch(`${direct.url}bytes?n=${BODY_BYTES}`)),
    up: () => done(port.fetch("sink", { method: "POST", body })),
    direct_up: () => done(fetch(`${direct.url}sink`, { method: "POST", body })),
  });
  const socket = await port.socket("ws");
  const local = await PortSocket.open(`${direct.url}ws`);
  const messages = await takeTurns(count * SMALL_FOR_EACH_BODY, {
    message: () => echoed(socket),
    direct_message: () => echoed(local),
  });
  const many = await inLanes(LANES, count * SMALL_FOR_EACH_BODY, () => done(port.fetch("x")));

  report.add("get", "ms", small.get, "in_guest_get");
  report.add("in_guest_get", "ms", inGuest.get);
  report.add("direct_get", "ms", small.direct_get);
  report.add("api_health", "ms", small.api_health);
  report.add(`get_in_${LANES}_lanes`, "ms", many.samples, "get");
  report.add("gets_per_second", "1/s", [(many.samples.length / many.wallMs) * 1000]);
  report.add("message", "ms", messages.message, "direct_message");
  report.add("direct_message", "ms", messages.direct_message);
  report.add("in_guest_down", "MB/s", megabytesPerSecond(BODY_BYTES, inGuest.down));
  for (const name of ["down", "up"] as const) {
    report.add(name, "MB/s", megabytesPerSecond(BODY_BYTES, large[name]), `direct_${name}`);
    report.add(`direct_${name}`, "MB/s", megabytesPerSecond(BODY_BYTES, large[`direct_${name}`]));
  }
}

/** The fixture's server as a process of this benchmark's own. */
class LocalServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(url: string, process: ChildProcess) {
    this.url = url;
    this.#process = process;
  }

  static async start(): Promise<LocalServer> {
    const free = createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    const { port } = free.address() as { port: number };
    await new Promise((done) => free.close(done));
    const url = `http://127.0.0.1:${port}/`;
    const server = new LocalServer(url, spawn("python3", [SERVER, String(port)], { stdio: "ignore" }));
    await until("the server listens", () =>
      fetch(`${url}x`).then(
        () => true,
        () => false,
      ),
    );
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#process, "exit");
    if (this.#process.exitCode === null && this.#process.kill("SIGKILL")) await exited;
  }
}
