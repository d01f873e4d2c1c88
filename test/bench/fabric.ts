/**
 * Benchmark of the fabric: stored messages per second, delivery latency to a waiting agent, cost of idle waiters, and a message to a
 * thousand agents. Yardstick: a NATS server with JetStream on the same disk, with the same durable work in alternation.
 */
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { Json, TestDaemon } from "../harness/daemon.ts";
import { Jetstream } from "./jetstream.ts";
import { atPace, inLanes, takeTurns, timed } from "./load/sampling.ts";
import type { Bench, Report } from "./report.ts";

const USUAL_COUNT = 50_000;
const SENDERS = 64;
/** Messages of each lane's inbox before it is read: well below the capacity of an inbox. */
const READ_EVERY = 400;
/** Messages that a sender with a backlog sends in one call. */
const BATCH = 16;
/** Messages per second at a fixed rate, instead of at full speed. */
const PACE = 20_000;
const WAKES = 200;
const IDLE_WAITERS = 5000;
const IDLE_MS = 10_000;
const IDLE_DEADLINE_MS = 40_000;
const FAN_OUT = 1000;
const FAN_OUTS = 20;
const PAYLOAD = { path: "/results/part-0001.json", note: "x".repeat(64) };
const TICK_MS = 10;

const ROOM = "/v1/rooms/bench";

export async function benchFabric({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: false });
  await daemon.room("bench");
  await using nats = await Jetstream.start();
  console.error(
    nats?.promise ?? "there is no nats-server, so nothing is held against it: packaging/install-host --tests",
  );
  await benchSending(report, daemon, nats, count);
  await benchWaking(report, daemon, nats);
  await benchFanOut(report, daemon);
  // A daemon that was busy retains memory, which would hide the memory of the waiters.
  await daemon.stop();
  const idle = await start({ guests: false });
  await idle.room("bench");
  await benchIdle(report, idle);
}

const send = (daemon: TestDaemon, body: object): Promise<Json> => daemon.ok("POST", `${ROOM}/messages`, body);
const inbox = (daemon: TestDaemon, agent: string, query = ""): Promise<Json> =>
  daemon.ok("GET", `${ROOM}/messages?agent_id=${agent}${query}`);

/** Each sender to a separate recipient, which reads its inbox periodically. */
async function benchSending(report: Report, daemon: TestDaemon, nats: Jetstream | null, count: number): Promise<void> {
  for (let lane = 0; lane < SENDERS; lane++) await inbox(daemon, `to-${lane}`);
  let after = 0;
  const rate = (wallMs: number, done: number) => [(done / wallMs) * 1000];
  const lanes = Array.from({ length: SENDERS }, (_, lane) => lane);
  const readAll = async () => {
    after = (await send(daemon, { source: "bench", destination: "bench", payload: null })).seq;
    await Promise.all(lanes.map((lane) => inbox(daemon, `to-${lane}`, `&after=${after}`)));
    await inbox(daemon, "bench", `&after=${after}`);
  };
  // The first round is not counted: it includes compilation of the service's code.
  const rounds = 1 + Math.ceil(count / (SENDERS * READ_EVERY));
  const ours: number[] = [];
  const theirs: number[] = [];
  const batches: number[] = [];
  const paced: number[] = [];
  let [oursMs, theirsMs, usedMs, batchesMs, usedByBatchesMs] = [0, 0, 0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    const each = SENDERS * READ_EVERY;
    const usedBefore = cpuMs(daemon.pid);
    const sent = await inLanes(SENDERS, each, async (index) => {
      const lane = index % SENDERS;
      await send(daemon, { source: `from-${lane}`, destination: `to-${lane}`, payload: PAYLOAD });
    });
    if (round > 0) {
      ours.push(...sent.samples);
      oursMs += sent.wallMs;
      usedMs += cpuMs(daemon.pid) - usedBefore;
    }
    if (nats && round > 0) {
      const kept = await inLanes(SENDERS, each, (index) => nats.publish(`to.${index % SENDERS}`, PAYLOAD));
      theirs.push(...kept.samples);
      theirsMs += kept.wallMs;
    }
    await readAll();
    const usedBeforeBatches = cpuMs(daemon.pid);
    const sendBatch = async (index: number) => {
      const lane = index % SENDERS;
      const message = { source: `from-${lane}`, destination: `to-${lane}`, payload: PAYLOAD };
      await daemon.ok("POST", `${ROOM}/messages/batch`, { messages: Array(BATCH).fill(message) });
    };
    const sentTogether = await inLanes(SENDERS, each / BATCH, sendBatch);
    if (round > 0) {
      batches.push(...sentTogether.samples);
      batchesMs += sentTogether.wallMs;
      usedByBatchesMs += cpuMs(daemon.pid) - usedBeforeBatches;
    }
    await readAll();
    const sentInPace = await atPace(PACE / BATCH, each / BATCH, sendBatch);
    if (round > 0) paced.push(...sentInPace);
    await readAll();
  }
  report.add("send_64_senders", "ms", ours, nats ? "jetstream_publish_64" : undefined, { of: "p99", most: 50 });
  report.add("messages_per_second", "1/s", rate(oursMs, ours.length), nats ? "jetstream_per_second" : undefined, {
    of: "p50",
    least: 5000,
  });
  // On a shared machine this is the cost without the other processes.
  report.add("cpu_of_a_message", "ms", [usedMs / ours.length]);
  const together = BATCH * batches.length;
  report.add("batch_of_16_64_senders", "ms", batches, nats ? "jetstream_publish_64" : undefined, {
    of: "p99",
    most: 200,
  });
  report.add("batched_per_second", "1/s", rate(batchesMs, together), nats ? "jetstream_per_second" : undefined, {
    of: "p50",
    least: 10_000,
  });
  report.add("batch_at_20000_per_second", "ms", paced, nats ? "jetstream_publish_64" : undefined);
  report.add("cpu_of_a_batched_message", "ms", [usedByBatchesMs / together]);
  if (!nats) return;
  report.add("jetstream_publish_64", "ms", theirs);
  report.add("jetstream_per_second", "1/s", rate(theirsMs, theirs.length));
}

/** From the moment that it is sent until its waiting recipient has it. */
async function benchWaking(report: Report, daemon: TestDaemon, nats: Jetstream | null): Promise<void> {
  let after = (await send(daemon, { source: "a", destination: "a", payload: 0 })).seq;
  const roads: Record<string, () => Promise<unknown>> = {
    send_to_wake: async () => {
      const waiting = inbox(daemon, "a", `&after=${after}&wait_ms=30000`);
      await isWaiting(daemon, "a");
      return await woken(
        async () => {
          await send(daemon, { source: "b", destination: "a", payload: PAYLOAD });
        },
        waiting.then((page) => (after = page.next_after)),
      );
    },
    ...(nats && { jetstream_to_wake: () => nats.roundTrip("wake", PAYLOAD) }),
  };
  const samples = await takeTurns(WAKES, roads);
  // The wait before the message is no part of it.
  report.add("send_to_wake", "ms", wakes.splice(0).slice(-WAKES), nats ? "jetstream_to_wake" : undefined, {
    of: "p50",
    most: 5,
  });
  if (samples.jetstream_to_wake) report.add("jetstream_to_wake", "ms", samples.jetstream_to_wake);
}

const wakes: number[] = [];

async function woken(act: () => Promise<void>, waiting: Promise<unknown>): Promise<void> {
  const startedAt = performance.now();
  const acted = act();
  await waiting;
  wakes.push(performance.now() - startedAt);
  await acted;
}

async function isWaiting(daemon: TestDaemon, agent: string): Promise<void> {
  for (;;) {
    const { items } = await daemon.ok("GET", `${ROOM}/agents`);
    if (items.find((item: Json) => item.agent_id === agent)?.waiting_on.length > 0) return;
    await Bun.sleep(TICK_MS);
  }
}

async function benchFanOut(report: Report, daemon: TestDaemon): Promise<void> {
  const destinations = Array.from({ length: FAN_OUT }, (_, index) => `many-${index}`);
  await inLanes(SENDERS, FAN_OUT, (index) => inbox(daemon, String(destinations[index])));
  const samples: number[] = [];
  for (let round = 0; round < FAN_OUTS; round++) {
    samples.push(await timed(() => send(daemon, { source: "one", destinations, payload: PAYLOAD })));
  }
  report.add("fan_out_1000", "ms", samples, undefined, { of: "p99", most: 60 });
}

/** The daemon's resource use for idle waiters alone. */
async function benchIdle(report: Report, daemon: TestDaemon): Promise<void> {
  const before = memoryMib(daemon.pid);
  const idleCpu = await cpuOfASecond(daemon);
  // Sockets of our own: fetch opens a few hundred connections at most.
  const waits = Array.from({ length: IDLE_WAITERS }, (_, index) => openWait(daemon, `idle-${index}`));
  const end = performance.now() + IDLE_DEADLINE_MS;
  for (;;) {
    const waiting = (await agentsOf(daemon)).filter((item: Json) => item.waiting_on.length > 0).length;
    if (waiting === IDLE_WAITERS) break;
    if (performance.now() > end) throw new Error(`${waiting} of ${IDLE_WAITERS} wait`);
    await Bun.sleep(100);
  }
  report.add("idle_5000_cpu_per_second", "ms", [await cpuOfASecond(daemon)], "idle_alone_cpu_per_second");
  report.add("idle_alone_cpu_per_second", "ms", [idleCpu]);
  report.add("idle_5000_memory", "MiB", [memoryMib(daemon.pid) - before], undefined, {
    of: "p50",
    most: 300e6 / 1024 ** 2,
  });
  for (const socket of waits) socket.destroy();
}

async function cpuOfASecond(daemon: TestDaemon): Promise<number> {
  const before = cpuMs(daemon.pid);
  await Bun.sleep(IDLE_MS);
  return ((cpuMs(daemon.pid) - before) / IDLE_MS) * 1000;
}

async function agentsOf(daemon: TestDaemon): Promise<Json[]> {
  const agents: Json[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Json = await daemon.ok("GET", `${ROOM}/agents?limit=1000${cursor && `&cursor=${cursor}`}`);
    agents.push(...page.items);
    cursor = page.next_cursor;
  }
  return agents;
}

function openWait(daemon: TestDaemon, agent: string): Socket {
  const { hostname, port } = new URL(daemon.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const path = `${ROOM}/messages?agent_id=${agent}&wait_ms=50000`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${daemon.apiKey}\r\n\r\n`);
  socket.on("error", () => {});
  return socket;
}

function memoryMib(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1]) / 1024;
}

/** Clock ticks are hundredths of a second on every Linux that this runs on. */
function cpuMs(pid: number): number {
  const times = readdirSync(`/proc/${pid}/task`).map((task) => {
    const [ran = ""] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ");
    return Number(ran) / 1e6;
  });
  return times.reduce((sum, each) => sum + each, 0);
}
