/**
 * Benchmark of SSH: a command, and the throughput of scp in both directions. Yardsticks: the same with a local sshd, started for this
 * benchmark on a separate port, and `true` over the API.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import { run, SshClient, sshPort } from "../harness/clients/ssh-client.ts";
import { freePort } from "../harness/free-port.ts";
import { megabytesPerSecond, takeTurns } from "./load/sampling.ts";
import type { Bench, Limit } from "./report.ts";

const USUAL_COUNT = 5;
const FILE_BYTES = 64 * 1024 ** 2;
const SSHD = "/usr/sbin/sshd";
const USER = "worker@bench";
const LEAST_SCP: Limit = { of: "p50", least: 10 };
const STARTED_MS = 10_000;

export async function benchSsh({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true });
  await daemon.room("bench");
  await daemon.sandbox("bench", "worker", GUEST_CID_MIN);
  using guest = new SshClient(sshPort(daemon));
  await daemon.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: guest.publicKey });
  await using local = await LocalSshd.start();
  if (!local)
    console.error(`there is no ${SSHD}, so scp is held against nothing: packaging/install-host --tests brings it`);

  const file = join(guest.home, "file");
  writeFileSync(file, randomBytes(FILE_BYTES));
  const back = join(guest.home, "back");
  const scp = async (client: SshClient, from: string, to: string) => {
    const done = await run("scp", [...client.options, "-q", from, to]);
    if (done.status !== 0) throw new Error(`scp failed: ${done.stderr}`);
  };
  const there = `${USER}@127.0.0.1:/root/file`;
  const roads: Record<string, () => Promise<unknown>> = {
    ssh_true: async () => {
      const done = await guest.ssh(USER, ["true"]);
      if (done.status !== 0) throw new Error(`ssh failed: ${done.stderr}`);
    },
    exec_true: () => daemon.exec("bench", "worker", { argv: ["true"] }),
    scp_up: () => scp(guest, file, there),
    scp_down: () => scp(guest, there, back),
    ...(local && {
      local_up: () => scp(local.client, file, `root@127.0.0.1:${local.client.home}/there`),
      local_down: () => scp(local.client, `root@127.0.0.1:${local.client.home}/there`, back),
    }),
  };
  const samples = await takeTurns(count, roads);
  const speed = (name: "scp_up" | "scp_down" | "local_up" | "local_down", yardstick?: string, limit?: Limit) =>
    report.add(name, "MB/s", megabytesPerSecond(FILE_BYTES, samples[name] ?? []), yardstick, limit);
  report.add("ssh_true", "ms", samples.ssh_true ?? [], "exec_true");
  report.add("exec_true", "ms", samples.exec_true ?? []);
  speed("scp_up", local ? "local_up" : undefined, LEAST_SCP);
  speed("scp_down", local ? "local_down" : undefined, LEAST_SCP);
  if (!local) return;
  speed("local_up");
  speed("local_down");
}

/** An sshd of this benchmark alone: its own port, keys and files, and the end of it by its pid. */
class LocalSshd implements AsyncDisposable {
  readonly client: SshClient;
  readonly #process: ChildProcess;

  private constructor(client: SshClient, process: ChildProcess) {
    this.client = client;
    this.#process = process;
  }

  static async start(): Promise<LocalSshd | null> {
    if (!existsSync(SSHD)) return null;
    const client = new SshClient(await freePort());
    const { home, port } = client;
    spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(home, "host")]);
    writeFileSync(join(home, "authorized"), `${client.publicKey}\n`, { mode: 0o600 });
    // sshd gives up its rights in there, wherever it was started.
    mkdirSync("/run/sshd", { recursive: true });
    const settings = [
      `Port=${port}`,
      "ListenAddress=127.0.0.1",
      `HostKey=${join(home, "host")}`,
      `AuthorizedKeysFile=${join(home, "authorized")}`,
      "StrictModes=no",
      "UsePAM=no",
      "PasswordAuthentication=no",
      "PidFile=none",
      "Subsystem=sftp internal-sftp",
    ].flatMap((each) => ["-o", each]);
    const process = spawn(SSHD, ["-D", "-e", "-f", "/dev/null", ...settings], { stdio: "ignore" });
    const local = new LocalSshd(client, process);
    const deadline = performance.now() + STARTED_MS;
    while (!(await listens(port))) {
      if (performance.now() < deadline && process.exitCode === null) continue;
      await local[Symbol.asyncDispose]();
      throw new Error("sshd did not start");
    }
    return local;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.exitCode === null && this.#process.kill("SIGTERM")) await exited;
    rmSync(this.client.home, { recursive: true, force: true });
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
