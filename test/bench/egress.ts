/**
 * Benchmark of egress: the same servers, in a network namespace, from a sandbox and from this host directly. `connect` is the time from the
 * start of a connection to the server's first byte. In the guest it is also compared with a connection to a server in the same guest, which
 * measures the guest's own slowness.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import { Outside, OUTSIDE_PORTS as PORTS } from "../harness/images/outside.ts";
import { megabytesPerSecond } from "./load/sampling.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 10;
const BODY_BYTES = 64 * 1024 ** 2;
const CONNECTS_FOR_EACH_BODY = 10;
const NAME = "allowed.example";
const CLIENT = readFileSync(join(import.meta.dirname, "../fixtures/egress-speed.py"), "utf8");

/** Milliseconds, as the client measures them. */
interface Speeds {
  look_up: number[];
  connect: number[];
  in_guest_connect: number[];
  down: number[];
  up: number[];
}

export async function benchEgress({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  await using outside = await Outside.start([NAME]);
  outside.setHosts({ [NAME]: outside.v4 });
  const daemon = await start({ guests: true, env: { ROOMD_EGRESS_HOSTS_FILE: outside.hostsFile } });
  await daemon.room("bench");
  await daemon.ok("POST", "/v1/rooms/bench/drive/write", { path: "/speed.py", content: CLIENT });
  await daemon.sandbox("bench", "worker", GUEST_CID_MIN, { egress_allowlist: [NAME] });

  const guest: Speeds = { look_up: [], connect: [], in_guest_connect: [], down: [], up: [] };
  const direct: Speeds = { look_up: [], connect: [], in_guest_connect: [], down: [], up: [] };
  const args = (host: string) => [host, NAME, PORTS.echo, PORTS.http, BODY_BYTES, CONNECTS_FOR_EACH_BODY].map(String);
  const take = (speeds: Speeds, line: string) => {
    const measured = JSON.parse(line) as Speeds;
    for (const name of Object.keys(speeds) as (keyof Speeds)[]) speeds[name].push(...measured[name]);
  };
  const inGuest = async () => {
    const command = `python3 /mnt/drive/speed.py ${args(NAME).join(" ")}`;
    const { stdout, exit_code, stderr } = await daemon.exec("bench", "worker", { command, timeout_ms: 300_000 });
    if (exit_code !== 0) throw new Error(stderr);
    return stdout;
  };
  const onHost = () => {
    const { stdout, stderr, status } = spawnSync("python3", ["-c", CLIENT, ...args(outside.v4)], { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    return stdout;
  };
  // One round is not counted: connections are known and code is compiled then.
  await inGuest();
  for (let round = 0; round < count; round++) {
    take(guest, await inGuest());
    take(direct, onHost());
  }
  const added = guest.connect.map((ms, index) => ms - (direct.connect[index] ?? 0));
  report.add("added_connect", "ms", added, "in_guest_connect", { of: "p50", most: 15 });
  report.add("connect", "ms", guest.connect, "direct_connect");
  report.add("in_guest_connect", "ms", guest.in_guest_connect);
  report.add("look_up", "ms", guest.look_up);
  report.add("direct_connect", "ms", direct.connect);
  for (const name of ["down", "up"] as const) {
    report.add(name, "MB/s", megabytesPerSecond(BODY_BYTES, guest[name]), `direct_${name}`, { of: "p50", least: 20 });
    report.add(`direct_${name}`, "MB/s", megabytesPerSecond(BODY_BYTES, direct[name]));
  }
}
