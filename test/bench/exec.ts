/**
 * Benchmark of exec: `true` alone and several concurrently, and the throughput of a command's output, as the byte count of the response and
 * as a stream of events. Yardsticks: a call of the same daemon that reaches no guest, a bare HTTP server, and a pipe within the guest.
 */
import type { OutputOf } from "../../shared/api/contract.ts";
import type { sandboxExec } from "../../shared/api/executions.ts";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { executionsPath, startFlood } from "../harness/event-loop/streams.ts";
import { inLanes, megabytesPerSecond, takeTurns } from "./load/sampling.ts";
import type { Bench, Report } from "./report.ts";

const USUAL_COUNT = 300;
const LANES = 8;
const OUTPUT_BYTES = 64 * 1024 ** 2;
const OUTPUT_ROUNDS = 5;
const OUTPUT_TIMEOUT_MS = 120_000;
const ROOM = "bench";
const AGENT = "worker";
const TRUE = { argv: ["true"] };

export async function benchExec({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true });
  await daemon.room(ROOM);
  await daemon.sandbox(ROOM, AGENT, GUEST_CID_MIN);
  await benchTrue(report, daemon, count);
  await benchOutput(report, daemon);
}

async function benchTrue(report: Report, daemon: TestDaemon, count: number): Promise<void> {
  const echo = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => new Response(request.body) });
  const roads = {
    exec: () => exec(daemon, TRUE),
    room_get: () => daemon.ok("GET", `/v1/rooms/${ROOM}`),
    echo: async () => await (await fetch(echo.url, { method: "POST", body: JSON.stringify(TRUE) })).json(),
  };
  try {
    const sequential = await takeTurns(count, roads);
    report.add("exec", "ms", sequential.exec, "room_get", { of: "p50", most: 20 });
    report.add("room_get", "ms", sequential.room_get, "echo");
    report.add("echo", "ms", sequential.echo);
    const sideBySide = async (name: keyof typeof roads, yardstick?: string) => {
      const { samples, wallMs } = await inLanes(LANES, count, roads[name]);
      report.add(`${name}_x${LANES}`, "ms", samples, yardstick && `${yardstick}_x${LANES}`);
      report.add(`${name}_x${LANES}_rate`, "1/s", [count / (wallMs / 1000)]);
    };
    await sideBySide("exec", "room_get");
    await sideBySide("room_get", "echo");
    await sideBySide("echo");
  } finally {
    await echo.stop(true);
  }
}

async function benchOutput(report: Report, daemon: TestDaemon): Promise<void> {
  const limits = { max_output_bytes: 1024, timeout_ms: OUTPUT_TIMEOUT_MS };
  const flood = `head -c ${OUTPUT_BYTES} /dev/zero`;
  const samples = await takeTurns(OUTPUT_ROUNDS, {
    output: async () => {
      const { stdout_bytes } = await exec(daemon, { command: flood, ...limits });
      if (stdout_bytes !== OUTPUT_BYTES) throw new Error(`${stdout_bytes} bytes came out instead of ${OUTPUT_BYTES}`);
    },
    stream: async () => {
      const path = executionsPath(ROOM, AGENT);
      const bytes = await (await startFlood(daemon, path, OUTPUT_TIMEOUT_MS, flood)).ended;
      // As base64 in lines of JSON.
      if (bytes < (OUTPUT_BYTES * 4) / 3) throw new Error(`the stream ended after ${bytes} bytes`);
    },
    pipe: () => exec(daemon, { command: `${flood} | cat >/dev/null`, ...limits }),
  });
  report.add("output", "MB/s", megabytesPerSecond(OUTPUT_BYTES, samples.output), "guest_pipe");
  report.add("stream", "MB/s", megabytesPerSecond(OUTPUT_BYTES, samples.stream), "guest_pipe", {
    of: "p50",
    least: 20,
  });
  report.add("guest_pipe", "MB/s", megabytesPerSecond(OUTPUT_BYTES, samples.pipe));
}

/** Runs a command that must succeed. */
async function exec(daemon: TestDaemon, body: Record<string, unknown>): Promise<OutputOf<typeof sandboxExec>> {
  const done: OutputOf<typeof sandboxExec> = await daemon.exec(ROOM, AGENT, body);
  if (done.exit_code !== 0) throw new Error(`the command failed: ${JSON.stringify(done)}`);
  return done;
}
