/**
 * Benchmark of calls' latency while one sandbox moves bytes endlessly, over each path: a command's output, a port, egress, files of the
 * drive, SSH. Yardstick: the same calls on an idle host, in alternation; `…_p99_ratio` is the busy p99 over the idle p99.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import { SshClient, sshPort } from "../harness/clients/ssh-client.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { executionsPath } from "../harness/event-loop/streams.ts";
import { ExposedPort } from "../harness/exposed-port.ts";
import { until } from "../harness/guests.ts";
import { OUTSIDE_PORTS, Outside } from "../harness/images/outside.ts";
import {
  addRatios,
  noSamples,
  type Other,
  otherOrganization,
  PROBES,
  probe,
  USUAL_RATES,
} from "./load/other-organization.ts";
import type { Bench } from "./report.ts";

const USUAL_MIB = 1024;
const MIB = 1024 ** 2;
const ROOM = "bulk";
const AGENT = "mover";
const NAME = "allowed.example";
/** Number of calls in one batch. */
const PROBED = 200;
/** Calls on an idle host before each path, and the minimum during it: a transfer that ends sooner is repeated. */
const COMPARED = 2000;
const TIMEOUT_MS = 600_000;

/** Moves this number of bytes; resolves when the transfer is complete. */
type Way = (bytes: number) => Promise<void>;

export async function benchBulk({ report, count = USUAL_MIB, start }: Bench): Promise<void> {
  await using outside = await Outside.start([NAME]);
  outside.setHosts({ [NAME]: outside.v4 });
  const env = { ROOMD_POOL_SIZE: "0", ROOMD_EGRESS_HOSTS_FILE: outside.hostsFile, ...USUAL_RATES };
  const daemon = await start({ guests: true, env });
  await daemon.room(ROOM);
  await daemon.sandbox(ROOM, AGENT, GUEST_CID_MIN, { memory_mib: 512, egress_allowlist: [NAME] });
  using ssh = new SshClient(sshPort(daemon));
  await daemon.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: ssh.publicKey });
  await using other = await otherOrganization(daemon);
  const bytes = count * MIB;
  await probe(other, COMPARED, noSamples());
  for (const [name, way] of Object.entries(await waysOf(daemon, ssh, bytes))) {
    const quiet = noSamples();
    const concurrent = noSamples();
    await probe(other, COMPARED, quiet);
    const seconds: number[] = [];
    while (concurrent.me.length < COMPARED) seconds.push(await probeDuring(other, () => way(bytes), concurrent));
    for (const kind of PROBES) {
      report.add(`${name}_${kind}`, "ms", concurrent[kind], `${name}_${kind}_quiet`);
      report.add(`${name}_${kind}_quiet`, "ms", quiet[kind]);
    }
    addRatios(report, name, concurrent, quiet);
    report.add(
      `${name}_rate`,
      "MB/s",
      seconds.map((each) => bytes / 1e6 / each),
    );
  }
}

/** Calls until the work is done. Returns the duration of the work in seconds. */
async function probeDuring(
  other: Other,
  work: () => Promise<void>,
  into: ReturnType<typeof noSamples>,
): Promise<number> {
  const startedAt = performance.now();
  let isDone = false;
  let tookMs = 0;
  const done = work().finally(() => {
    isDone = true;
    tookMs = performance.now() - startedAt;
  });
  while (!isDone) await probe(other, PROBED, into);
  await done;
  return tookMs / 1000;
}

async function waysOf(daemon: TestDaemon, ssh: SshClient, bytes: number): Promise<Record<string, Way>> {
  const port = await ExposedPort.expose(daemon, `${ROOM}/sandboxes/${AGENT}`, { port: 8000 });
  await port.serve();
  const file = `${daemon.url}/v1/rooms/${ROOM}/drive/files/large`;
  await daemon.sh(ROOM, AGENT, `truncate -s ${bytes} /mnt/drive/large`);
  const key = ["-H", `Authorization: Bearer ${daemon.apiKey}`];
  const token = Object.entries(port.token).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  return {
    exec: async (bytes) => {
      const path = executionsPath(ROOM, AGENT);
      const body = { command: `read _; head -c ${bytes} /dev/zero`, stdin_open: true, timeout_ms: TIMEOUT_MS };
      const { exec_id } = await daemon.ok("POST", path, body);
      const { read, ended } = client(["curl", "-sN", ...key, `${daemon.url}${path}/${exec_id}/stream`]);
      await read;
      await daemon.ok("POST", `${path}/${exec_id}/stdin`, { data_b64: "Cg==", eof: true });
      await ended;
    },
    port: (bytes) => client(["curl", "-sN", ...token, `${port.url}bytes?n=${bytes}`]).ended,
    egress: async (bytes) => {
      const command = `curl -sf -o /dev/null http://${NAME}:${OUTSIDE_PORTS.http}/bytes?n=${bytes}`;
      const { exit_code } = await daemon.exec(ROOM, AGENT, { command, timeout_ms: TIMEOUT_MS });
      if (exit_code !== 0) throw new Error(`curl ended with ${exit_code}`);
    },
    drive_down: () => client(["curl", "-sN", ...key, file]).ended,
    drive_up: () => client(["sh", "-c", `head -c ${bytes} /dev/zero | curl -s -T - ${quoted([...key, file])}`]).ended,
    ssh: (bytes) =>
      client(["ssh", ...ssh.options, "-l", `${AGENT}@${ROOM}`, "127.0.0.1", `head -c ${bytes} /dev/zero`]).ended,
  };
}

/**
 * A program that simulates a client on another host: it runs at low priority, so that it does not disturb the measurement. `read` resolves
 * with its first byte.
 */
function client(argv: readonly string[]): { read: Promise<void>; ended: Promise<void> } {
  const sink = `${quoted(argv)} | { head -c 1; cat >/dev/null; }`;
  const child = spawn("nice", ["-n", "19", "bash", "-o", "pipefail", "-c", sink], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let isRead = false;
  child.stdout.on("data", () => {
    isRead = true;
  });
  const closed = once(child, "close").then(([status]) => {
    if (status !== 0) throw new Error(`${argv[0]} ended with ${status}`);
  });
  const read = until("the first byte has come", () => isRead || child.exitCode !== null).then(() => {});
  return { read, ended: closed };
}

const quoted = (words: readonly string[]) => words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
