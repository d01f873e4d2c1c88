/** OpenSSH's own programs as tests drive them: with a separate key, no configuration, and no known hosts. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestDaemon } from "../daemon.ts";

export interface Ended {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: string;
}

/** The port of a daemon's gateway, from its readiness line. */
export function sshPort(daemon: TestDaemon): number {
  const port = /ssh at \S+:(\d+)/.exec(daemon.ready)?.[1];
  if (port === undefined) throw new Error(`the daemon has no gateway: ${daemon.ready}`);
  return Number(port);
}

export class SshClient implements Disposable {
  readonly home = mkdtempSync("/tmp/roomd-ssh-");
  readonly key = join(this.home, "id");
  readonly #askpass = join(this.home, "askpass");
  /** The gateway's port; it changes with a restart. */
  port: number;

  constructor(port: number) {
    this.port = port;
    spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", this.key]);
    // Once: a file that is being started cannot be written.
    writeFileSync(this.#askpass, `#!/bin/sh\nprintf '%s\\n' "$ROOMD_TEST_PASSWORD"\n`, { mode: 0o700 });
  }

  get publicKey(): string {
    return readFileSync(`${this.key}.pub`, "utf8").trim();
  }

  /** Options of ssh, scp and sftp alike. */
  get options(): string[] {
    const options = {
      IdentityFile: this.key,
      IdentitiesOnly: "yes",
      IdentityAgent: "none",
      UserKnownHostsFile: join(this.home, "known_hosts"),
      StrictHostKeyChecking: "accept-new",
      PreferredAuthentications: "publickey",
      LogLevel: "ERROR",
      ConnectTimeout: "20",
      Port: String(this.port),
    };
    return ["-F", "none", ...Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`])];
  }

  /** `ssh OPTIONS USER@127.0.0.1 WORDS`. */
  ssh(user: string, words: string[], input: string | Buffer = "", more: string[] = []): Promise<Ended> {
    return run("ssh", [...this.options, ...more, "-l", user, "127.0.0.1", ...words], input);
  }

  /** As rsync's -e and git's GIT_SSH_COMMAND have it. */
  get command(): string {
    return ["ssh", ...this.options].join(" ");
  }

  start(user: string, words: string[], more: string[] = []): ChildProcess {
    return spawn("ssh", [...this.options, ...more, "-l", user, "127.0.0.1", ...words], { stdio: "pipe" });
  }

  /** With a password, or with the key. */
  startAs(user: string, password: string | null, words: string[]): ChildProcess {
    if (password === null) return this.start(user, words);
    const { args, env } = this.#withPassword(password);
    return spawn("ssh", [...args, "-l", user, "127.0.0.1", ...words], { stdio: "pipe", env });
  }

  sshByPassword(user: string, password: string, words: string[]): Promise<Ended> {
    return ended(this.startAs(user, password, words), "");
  }

  /** Options and environment with which ssh gets a password without a person. */
  #withPassword(password: string): { args: string[]; env: NodeJS.ProcessEnv } {
    // The first of two options counts.
    const first = ["-F", "none", "-o", "PreferredAuthentications=password", "-o", "NumberOfPasswordPrompts=1"];
    return {
      args: [...first, ...this.options.slice(2)],
      env: { ...process.env, SSH_ASKPASS: this.#askpass, SSH_ASKPASS_REQUIRE: "force", ROOMD_TEST_PASSWORD: password },
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Runs a program to its end. */
export function run(program: string, args: string[], input: string | Buffer = "", env = process.env): Promise<Ended> {
  const child = spawn(program, args, { stdio: "pipe", env });
  return ended(child, input);
}

export async function ended(child: ChildProcess, input: string | Buffer | null = null): Promise<Ended> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
  child.stdin?.on("error", () => {});
  if (input !== null) child.stdin?.end(input);
  const { promise, resolve, reject } = Promise.withResolvers<Ended>();
  child.once("error", reject);
  child.once("close", (status, signal) =>
    resolve({ status, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }),
  );
  return await promise;
}
