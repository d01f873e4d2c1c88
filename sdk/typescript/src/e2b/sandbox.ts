/** The class Sandbox by E2B's interface: a sandbox in a room of its own. It ends after `timeoutMs`. */
import { Client } from "../client.ts";
import { NotFoundError as NativeNotFoundError } from "../errors.ts";
import { Sandbox as NativeSandbox } from "../sandbox.ts";
import type { CallOptions } from "../transport.ts";
import { Commands, HOME } from "./commands.ts";
import { InvalidArgumentError, translating, unlessMissing } from "./errors.ts";
import { Filesystem } from "./filesystem.ts";
import { ENDED, infoOf, PAUSED, type SandboxInfo, type SandboxListOpts, SandboxPaginator } from "./listing.ts";
import { Pty } from "./pty.ts";
import { type ConnectionOpts, callOf, clientOf, type RequestOpts } from "./request.ts";

/** Options of a new sandbox. */
export interface SandboxOpts extends ConnectionOpts {
  /** Name of the template; `default` by default. */
  template?: string;
  /** Labels of the sandbox. */
  metadata?: Record<string, string>;
  /** Environment variables of every command. */
  envs?: Record<string, string>;
  /** Lifetime of the sandbox in ms; 300,000 by default. */
  timeoutMs?: number;
  /** false: the sandbox has no connections to the outside. */
  allowInternetAccess?: boolean;
  /** Destinations to which the sandbox may connect. */
  network?: { allowOut?: string[] };
  /** "pause": the sandbox hibernates after `timeoutMs` without use, and wakes up on the next use. */
  lifecycle?: { onTimeout?: "kill" | "pause"; autoResume?: boolean };
}

const DEFAULT_TIMEOUT_MS = 300_000;

/** A sandbox. */
export class Sandbox {
  /** Its id, for `Sandbox.connect`. */
  readonly sandboxId: string;
  /** Its files. */
  readonly files: Filesystem;
  /** Its commands. */
  readonly commands: Commands;
  /** Its terminals. */
  readonly pty: Pty;
  /** The same sandbox with the full interface of this SDK. */
  readonly native: NativeSandbox;
  readonly #hosts = new Map<number, string>();

  private constructor(native: NativeSandbox, client: Client) {
    this.native = native;
    this.sandboxId = native.sandboxId;
    this.files = new Filesystem(native.files);
    this.commands = new Commands(client, native);
    this.pty = new Pty(native);
  }

  /** Creates a sandbox from a template, `default` if none is given. */
  static create(opts?: SandboxOpts): Promise<Sandbox>;
  static create(template: string, opts?: SandboxOpts): Promise<Sandbox>;
  static create(first: string | SandboxOpts = {}, more: SandboxOpts = {}): Promise<Sandbox> {
    const opts = typeof first === "string" ? { ...more, template: first } : first;
    return translating(async () => {
      const native = await NativeSandbox.create({ ...clientOf(opts), ...wantedOf(opts), ...callOf(opts) });
      try {
        await native.files.mkdir(HOME, callOf(opts));
      } catch (error) {
        await native.destroy().catch(() => {});
        throw error;
      }
      return new Sandbox(native, new Client(clientOf(opts)));
    });
  }

  /** Finds a sandbox by its id and resumes it if it is paused. `timeoutMs` sets its end, from now. */
  static connect(sandboxId: string, opts: ConnectionOpts & { timeoutMs?: number } = {}): Promise<Sandbox> {
    return translating(async () => {
      const sandbox = await Sandbox.#found(sandboxId, opts);
      await sandbox.#resume(opts);
      return sandbox;
    });
  }

  static async #found(sandboxId: string, opts: ConnectionOpts): Promise<Sandbox> {
    const native = await NativeSandbox.connect(sandboxId, { ...clientOf(opts), ...callOf(opts) });
    return new Sandbox(native, new Client(clientOf(opts)));
  }

  /** Pages of the organization's sandboxes. */
  static list(opts: SandboxListOpts = {}): SandboxPaginator {
    return new SandboxPaginator(opts);
  }

  /** Ends a sandbox. False if it has already ended, or does not exist. */
  static async kill(sandboxId: string, opts: ConnectionOpts = {}): Promise<boolean> {
    let found: Sandbox | undefined;
    const exists = await unlessMissing(async () => {
      found = await Sandbox.#found(sandboxId, opts);
    });
    return exists && found !== undefined && (await found.kill(opts));
  }

  /** Sets the end of a sandbox, `timeoutMs` from now. */
  static setTimeout(sandboxId: string, timeoutMs: number, opts: ConnectionOpts = {}): Promise<void> {
    return translating(async () => (await Sandbox.#found(sandboxId, opts)).setTimeout(timeoutMs, opts));
  }

  /** Describes a sandbox. */
  static getInfo(sandboxId: string, opts: ConnectionOpts = {}): Promise<SandboxInfo> {
    return translating(async () => (await Sandbox.#found(sandboxId, opts)).getInfo(opts));
  }

  /** Saves a sandbox with its memory to disk. */
  static pause(sandboxId: string, opts: ConnectionOpts = {}): Promise<boolean> {
    return translating(async () => (await Sandbox.#found(sandboxId, opts)).pause(opts));
  }

  /** Exposes a port publicly, and returns its URL. `getHost` and `getUrl` need this first. */
  exposePort(port: number, { wait = false }: { wait?: boolean } = {}): Promise<string> {
    return translating(async () => {
      const { url } = await this.native.exposePort(port, { visibility: "public", wait });
      this.#hosts.set(port, url);
      return url;
    });
  }

  /** Host, port and path of an exposed port. Ports are closed until `await sandbox.exposePort(port)`. */
  getHost(port: number): string {
    return this.getUrl(port)
      .replace(/^https?:\/\//, "")
      .replace(/\/$/, "");
  }

  /** URL of an exposed port. */
  getUrl(port: number): string {
    const url = this.#hosts.get(port);
    if (url === undefined) {
      throw new InvalidArgumentError(`Port ${port} is closed: call await sandbox.exposePort(${port}) before getHost.`);
    }
    return url;
  }

  /** Resumes the sandbox if it is paused. `timeoutMs` sets its end, from now. */
  connect(opts: RequestOpts & { timeoutMs?: number } = {}): Promise<this> {
    return translating(async () => {
      await this.native.get(callOf(opts));
      await this.#resume(opts);
      return this;
    });
  }

  async #resume(opts: RequestOpts & { timeoutMs?: number }): Promise<void> {
    if (PAUSED.includes(this.native.state)) await this.native.resume(callOf(opts));
    if (opts.timeoutMs !== undefined) await this.native.setTimeout(atLeast(opts.timeoutMs), callOf(opts));
  }

  /** Whether it runs. */
  isRunning(opts: RequestOpts = {}): Promise<boolean> {
    return translating(() => this.native.isRunning(callOf(opts)));
  }

  /** Sets the sandbox's end, `timeoutMs` from now. */
  setTimeout(timeoutMs: number, opts: RequestOpts = {}): Promise<void> {
    return translating(() => this.native.setTimeout(atLeast(timeoutMs), callOf(opts)));
  }

  /** Describes it. */
  getInfo(opts: RequestOpts = {}): Promise<SandboxInfo> {
    return translating(async () => infoOf(await this.native.get(callOf(opts))));
  }

  /** Saves the sandbox with its memory to disk. `connect` or the next use resumes it. */
  pause(opts: RequestOpts = {}): Promise<boolean> {
    return translating(async () => PAUSED.includes((await this.native.hibernate(callOf(opts))).state));
  }

  /** Ends the sandbox. False if it has already ended. */
  kill(opts: RequestOpts = {}): Promise<boolean> {
    return translating(async () => {
      const runs = await this.#lives(callOf(opts));
      await this.native.destroy(callOf(opts));
      return runs;
    });
  }

  async #lives(options: CallOptions): Promise<boolean> {
    try {
      return !ENDED.includes((await this.native.get(options)).state);
    } catch (error) {
      if (error instanceof NativeNotFoundError) return false;
      throw error;
    }
  }
}

/** The shortest lifetime that the service accepts is one second. */
const atLeast = (timeoutMs: number) => Math.max(1000, timeoutMs);

function wantedOf({ template, metadata, envs, timeoutMs = DEFAULT_TIMEOUT_MS, ...opts }: SandboxOpts) {
  const seconds = Math.max(1, Math.ceil(timeoutMs / 1000));
  const egress = opts.allowInternetAccess === false ? [] : opts.network?.allowOut;
  const end =
    opts.lifecycle?.onTimeout === "pause"
      ? { lifecycle: { idle_after_seconds: seconds, on_idle: "hibernate" as const } }
      : { maxDurationSeconds: seconds };
  return {
    ...end,
    ...(template === undefined ? {} : { template }),
    ...(metadata === undefined ? {} : { labels: metadata }),
    ...(envs === undefined ? {} : { env: envs }),
    ...(egress === undefined ? {} : { egress }),
  };
}
