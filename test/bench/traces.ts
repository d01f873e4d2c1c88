/**
 * Benchmark of traces: a message sent to a service without a collector, without a trace and with one, against a service that exports to a
 * collector; and the trace overhead of a call without traces, in isolation.
 */
import { randomBytes } from "node:crypto";
import { CallTrace, NO_TRACES } from "../../daemon/core/call/traces.ts";
import { readTraceparent, TRACEPARENT } from "../../shared/traceparent.ts";
import { Collector } from "../fixtures/collector.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { loadHttp } from "./load/http-load.ts";
import { takeTurns } from "./load/sampling.ts";
import type { Bench, Report } from "./report.ts";

const USUAL_COUNT = 500;
const ROUNDS = 6;
const CONNECTIONS = 64;
const READS = 10_000;
/** Batch size for operations that are too short to be timed alone. */
const TOGETHER = 1000;

export async function benchTraces({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  benchNothing(report);
  const collector = await new Collector().listen();
  try {
    const off = await start({ guests: false });
    const on = await start({ guests: false, env: { ROOMD_OTEL_ENDPOINT: collector.url } });
    for (const daemon of [off, on]) await daemon.room("bench");
    const { plain, traced, told } = await takeTurns(count, {
      plain: () => send(off, {}),
      traced: () => send(off, traceparent()),
      told: () => send(on, traceparent()),
    });
    report.add("send_off", "ms", plain);
    report.add("send_off_with_trace", "ms", traced, "send_off");
    report.add("send_told", "ms", told, "send_off");
    const rates: Record<"plain" | "traced" | "told", number[]> = { plain: [], traced: [], told: [] };
    for (let round = -1; round < ROUNDS; round++) {
      const each = {
        plain: await read(off, {}),
        traced: await read(off, traceparent()),
        told: await read(on, traceparent()),
      };
      if (round >= 0) for (const [name, rate] of Object.entries(each)) rates[name as keyof typeof rates].push(rate);
    }
    report.add("get_off_per_second", "1/s", rates.plain);
    report.add("get_off_with_trace_per_second", "1/s", rates.traced, "get_off_per_second");
    report.add("get_told_per_second", "1/s", rates.told, "get_off_per_second");
  } finally {
    await collector.stop();
  }
}

/** Work of the pipeline for traces in a call without a trace, with no collector. */
function benchNothing(report: Report): void {
  const headers = new Headers({ authorization: "Bearer key", "content-type": "application/json" });
  const samples: number[] = [];
  let started = 0;
  for (let round = 0; round < 200; round++) {
    const startedAt = performance.now();
    for (let n = 0; n < TOGETHER; n++) {
      const trace = new CallTrace(NO_TRACES, readTraceparent(headers.get(TRACEPARENT)), { name: "agent_send" });
      if (trace.context) started++;
      trace.end(() => ({}));
    }
    samples.push(performance.now() - startedAt);
  }
  if (started > 0) throw new Error("a trace started although no exporter is configured");
  report.add("thousand_calls_without", "ms", samples, undefined, { of: "p50", most: 1 });
}

function traceparent(): Record<string, string> {
  return { traceparent: `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01` };
}

async function send(daemon: TestDaemon, headers: Record<string, string>): Promise<void> {
  const body = { source: "planner", topic: "bench", payload: "a message" };
  const { status } = await daemon.api("POST", "/v1/rooms/bench/messages", body, headers);
  if (status !== 202) throw new Error(`a message was answered ${status}`);
}

/** How many a second. */
async function read(daemon: TestDaemon, headers: Record<string, string>): Promise<number> {
  const authorization = `Bearer ${daemon.apiKey}`;
  const url = `${daemon.url}/v1/rooms/bench`;
  const { samplesMs, wallMs } = await loadHttp(url, { authorization, ...headers }, CONNECTIONS, READS);
  return (samplesMs.length / wallMs) * 1000;
}
