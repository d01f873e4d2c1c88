/**
 * A separate virtual host for a test: booted with a payload at /payload, controlled over ssh, rebooted from within, and removed at the end.
 * Its commands, their output and its console are kept, and shown if a test fails.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../harness/free-port.ts";
import { until } from "../harness/guests.ts";

const TESTS = process.env.ROOMD_TEST_DIR ?? "/var/tmp/roomd-test";
const HERE = import.meta.dirname;
const PAYLOAD_BYTES = 6 * 1024 ** 3;
const DATA_BYTES = 16 * 1024 ** 3;
/** Emulated, and maybe concurrent with other work. */
const BOOT_MS = 480_000;
const COMMAND_MS = 900_000;

function copySparse(from: string, to: string): void {
  execFileSync("cp", ["--sparse=always", "--reflink=auto", from, to]);
}

export interface Said {
  status: number | null;
  /** Standard output and error, as they came. */
  text: string;
}

/** Of which kind its processors are, as QEMU names it, and how many. */
export interface HostHardware {
  cpu: string;
  processors: number;
  memory_mib: number;
}

export class VirtualHost {
  readonly #directory: string;
  readonly #image: string;
  readonly #port: number;
  readonly #machine: ReturnType<typeof spawn>;
  readonly #said: string[] = [];

  private constructor(directory: string, image: string, port: number, { cpu, processors, memory_mib }: HostHardware) {
    this.#directory = directory;
    this.#image = image;
    this.#port = port;
    const disks = [
      join(directory, "payload.raw"),
      join(directory, "console.log"),
      String(port),
      join(directory, "data.raw"),
    ];
    this.#machine = spawn(join(HERE, "boot"), [image, ...disks], {
      env: {
        ...process.env,
        ROOMD_TEST_HOST_CPU: cpu,
        ROOMD_TEST_HOST_PROCESSORS: String(processors),
        ROOMD_TEST_HOST_MEMORY_MIB: String(memory_mib),
      },
      stdio: ["ignore", "inherit", "inherit"],
    });
  }

  /** The image, built if absent; a path for `boot`. */
  static image(suite = "trixie"): string {
    const image = join(TESTS, suite === "trixie" ? "host" : `host-${suite}`);
    execFileSync(join(HERE, "build"), [image, suite], { stdio: ["ignore", "ignore", "pipe"] });
    return image;
  }

  /**
   * Resolves when ssh answers. `payload` has a file or directory for each name below /payload, `data` is the initial content of the last
   * disk.
   */
  static async boot(
    image: string,
    payload: Record<string, string>,
    {
      data = null,
      cpu = "max",
      processors = 1,
      memory_mib = 8192,
    }: { data?: string | null } & Partial<HostHardware> = {},
  ): Promise<VirtualHost> {
    const directory = mkdtempSync(join(TESTS, "host-run-"));
    const root = join(directory, "payload");
    mkdirSync(root);
    for (const [name, from] of Object.entries(payload)) execFileSync("cp", ["-a", from, join(root, name)]);
    for (const [disk, bytes] of [
      ["payload.raw", PAYLOAD_BYTES],
      ["data.raw", DATA_BYTES],
    ] as const) {
      writeFileSync(join(directory, disk), "");
      truncateSync(join(directory, disk), bytes);
    }
    if (data !== null) copySparse(data, join(directory, "data.raw"));
    execFileSync("mke2fs", ["-q", "-t", "ext4", "-d", root, join(directory, "payload.raw")]);
    rmSync(root, { recursive: true });
    const host = new VirtualHost(directory, image, await freePort(), { cpu, processors, memory_mib });
    try {
      await host.#answers();
    } catch (error) {
      console.log(host.story());
      host.end();
      throw error;
    }
    return host;
  }

  /** Runs a shell command as root. */
  async run(command: string, deadlineMs = COMMAND_MS): Promise<Said> {
    const startedAt = performance.now();
    const ssh = Bun.spawn([...this.#ssh(), command], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: deadlineMs,
    });
    const [out, err] = await Promise.all([ssh.stdout.text(), ssh.stderr.text(), ssh.exited]);
    const tookMs = performance.now() - startedAt;
    const end = tookMs < deadlineMs ? `(ended with ${ssh.exitCode})` : `(was ended after its ${deadlineMs / 1000} s)`;
    const result = { status: ssh.exitCode, text: ssh.exitCode === 0 ? out + err : `${out}${err}${end}\n` };
    this.#said.push(`$ ${command}  # ${(tookMs / 1000).toFixed(1)} s\n${result.text}`);
    return result;
  }

  /** The same; throws if the command fails. Returns its output, without the last newline. */
  async ok(command: string, deadlineMs = COMMAND_MS): Promise<string> {
    const { status, text } = await this.run(command, deadlineMs);
    if (status !== 0) throw new Error(`\`${command}\` ended with ${status} on the virtual host:\n${text.slice(-4000)}`);
    return text.trimEnd();
  }

  /** Reboots it with the command `how`. Resolves when ssh answers. */
  async reboot(deadlineMs = BOOT_MS, how = "systemctl --no-block reboot"): Promise<void> {
    const before = await this.ok("cat /proc/sys/kernel/random/boot_id");
    await this.run(how, 60_000);
    await until(
      "the host has rebooted",
      async () => {
        const { status, text } = await this.run("cat /proc/sys/kernel/random/boot_id", 20_000);
        return status === 0 && text.trim() !== before;
      },
      deadlineMs,
    );
  }

  /** Keeps the last disk as it is now, which must not be mounted, in a file for other boots. */
  keepData(file: string): void {
    copySparse(join(this.#directory, "data.raw"), `${file}.new`);
    renameSync(`${file}.new`, file);
  }

  /** All commands and their output. */
  transcript(): string {
    return this.#said.join("");
  }

  /** Diagnostics after a failure. */
  story(): string {
    const console = readFileSync(join(this.#directory, "console.log"), "utf8").slice(-4000);
    return `--- the virtual host\n${this.transcript()}\n--- its console\n${console}`;
  }

  end(): void {
    this.#machine.kill("SIGKILL");
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #answers(): Promise<void> {
    await until(
      "ssh answers",
      async () => {
        if (this.#machine.exitCode !== null)
          throw new Error(`the virtual host has ended with ${this.#machine.exitCode}`);
        return (await this.run("true", 20_000)).status === 0;
      },
      BOOT_MS,
    );
    this.#said.length = 0;
  }

  /** One connection is kept for all commands. */
  #ssh(): string[] {
    const options = {
      StrictHostKeyChecking: "no",
      UserKnownHostsFile: "/dev/null",
      LogLevel: "ERROR",
      ConnectTimeout: "10",
      ControlMaster: "auto",
      ControlPath: join(this.#directory, "ssh"),
      ControlPersist: "60",
      ServerAliveInterval: "5",
      ServerAliveCountMax: "12",
    };
    const flags = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
    return ["ssh", "-i", join(this.#image, "key"), "-p", String(this.#port), ...flags, "root@127.0.0.1"];
  }
}
