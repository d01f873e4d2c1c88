/** The class Sandbox by E2B's interface: a sandbox in a room of its own, which ends after `timeoutMs`. */
import { Client, type ClientOptions } from "../client.ts";
import type { Sandbox as SandboxRecord } from "../generated/schemas.ts";
import { Sandbox as NativeSandbox } from "../sandbox.ts";
import { Commands, HOME } from "./commands.ts";
import { InvalidArgumentError, SandboxError, translating, unlessMissing } from "./errors.ts";
import { Filesystem } from "./filesystem.ts";
import { Pty } from "./pty.ts";

/** How the service is reached: by `apiUrl` and `apiKey`, or ROOMD_URL and ROOMD_API_KEY. */
export interface ConnectionOpts {
  apiKey?: string;
  apiUrl?: string;
  requestTimeoutMs?: number;
  signal?: AbortSignal;
}

/** Options of a new sandbox. */
export interface SandboxOpts extends ConnectionOpts {
  /** Name of the template; `default` by default. */
  template?: string;
  /** Labels of the sandbox. */
  metadata?: Record<string, string>;
  /** Environment variables of every command. */
  envs?: Record<string, string>;
  /** It ends after this time; 300,000 by default. */
  timeoutMs?: number;
  /** false: it connects to nothing outside. */
  allowInternetAccess?: boolean;
  /** Destinations that it may connect to. */
  network?: { allowOut?: string[] };
  /** "pause": it hibernates after `timeoutMs` without use, and is woken by the next use. */
  lifecycle?: { onTimeout?: "kill" | "pause"; autoResume?: boolean };
}

/** Description of a sandbox. */
export interface SandboxInfo {
  /** Its id, for `Sandbox.connect`. */
  sandboxId: string;
  /** Template that it was created from. */
  templateId: string;
  /** Never set. */
  name?: string;
  /** Its labels. */
  metadata: Record<string, string>;
  /** Time of its creation. */
  startedAt: Date;
  /** Time of its end; the largest date if it has none. */
  endAt: Date;
  /** Whether it runs or is paused. */
  state: "running" | "paused";
  /** Number of virtual CPUs. */
  cpuCount: number;
  /** Memory in MiB. */
  memoryMB: number;
}

/** Filters of a list. */
export interface SandboxListOpts extends ConnectionOpts {
  /** Filters by labels, state and template. */
  query?: { metadata?: Record<string, string>; state?: SandboxInfo["state"][]; template?: string };
  /** Number of sandboxes of a page; 100 by default. */
  limit?: number;
}

const DEFAULT_TIMEOUT_MS = 300_000;
const DEFAULT_PAGE = 100;
/** End of a sandbox that has no end. */
const NEVER = new Date(8.64e15);
const PAUSED: readonly SandboxRecord["state"][] = ["pausing", "paused", "hibernating", "hibernated"];
const ENDED: readonly SandboxRecord["state"][] = ["failed", "destroying", "destroyed"];

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
  /** The same sandbox with all that this SDK offers beside E2B's interface. */
  readonly native: NativeSandbox;
  readonly #hosts = new Map<number, string>();

  private constructor(native: NativeSandbox, client: Client) {
    this.native = native;
    this.sandboxId = native.sandboxId;
    this.files = new Filesystem(native.files);
    this.commands = new Commands(client, native);
    this.pty = new Pty(native);
  }

  /** Creates a sandbox of a template, `default` if none is named. */
  static create(opts?: SandboxOpts): Promise<Sandbox>;
  static create(template: string, opts?: SandboxOpts): Promise<Sandbox>;
  static create(first: string | SandboxOpts = {}, more: SandboxOpts = {}): Promise<Sandbox> {
    const opts = typeof first === "string" ? { ...more, template: first } : first;
    return translating(async () => {
      const native = await NativeSandbox.create({ ...clientOf(opts), ...wantedOf(opts) });
      await native.files.mkdir(HOME);
      return new Sandbox(native, new Client(clientOf(opts)));
    });
  }

  /** Finds a sandbox by its id and resumes it if it is paused. `timeoutMs` sets its end, from now. */
  static connect(sandboxId: string, opts: ConnectionOpts & { timeoutMs?: number } = {}): Promise<Sandbox> {
    return translating(async () => {
      const native = await NativeSandbox.connect(sandboxId, clientOf(opts));
      if (PAUSED.includes(native.state)) await native.resume();
      if (opts.timeoutMs !== undefined) await native.setTimeout(opts.timeoutMs);
      return new Sandbox(native, new Client(clientOf(opts)));
    });
  }

  /** Pages of the organization's sandboxes. */
  static list(opts: SandboxListOpts = {}): SandboxPaginator {
    return new SandboxPaginator(opts);
  }

  /** Ends a sandbox. False if it does not exist. */
  static kill(sandboxId: string, opts: ConnectionOpts = {}): Promise<boolean> {
    return unlessMissing(async () => (await NativeSandbox.connect(sandboxId, clientOf(opts))).destroy());
  }

  /** Sets the end of a sandbox, `timeoutMs` from now. */
  static setTimeout(sandboxId: string, timeoutMs: number, opts: ConnectionOpts = {}): Promise<void> {
    return translating(async () => (await NativeSandbox.connect(sandboxId, clientOf(opts))).setTimeout(timeoutMs));
  }

  /** Describes a sandbox. */
  static getInfo(sandboxId: string, opts: ConnectionOpts = {}): Promise<SandboxInfo> {
    return translating(async () => infoOf(await (await NativeSandbox.connect(sandboxId, clientOf(opts))).get()));
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

  /** Whether it runs. */
  isRunning(): Promise<boolean> {
    return translating(() => this.native.isRunning());
  }

  /** Sets its end, `timeoutMs` from now. */
  setTimeout(timeoutMs: number): Promise<void> {
    return translating(() => this.native.setTimeout(timeoutMs));
  }

  /** Describes it. */
  getInfo(): Promise<SandboxInfo> {
    return translating(async () => infoOf(await this.native.get()));
  }

  /** Saves it to disk with its memory. `Sandbox.connect` resumes it, as does the next use. */
  pause(): Promise<boolean> {
    return translating(async () => PAUSED.includes((await this.native.hibernate()).state));
  }

  /** Ends it. False if it has ended. */
  kill(): Promise<boolean> {
    return unlessMissing(() => this.native.destroy());
  }
}

/** Pages of sandboxes. */
export class SandboxPaginator {
  readonly #items: AsyncGenerator<SandboxRecord>;
  readonly #query: NonNullable<SandboxListOpts["query"]>;
  readonly #limit: number;
  #hasNext = true;

  /** Pages of the sandboxes that match. */
  constructor({ query = {}, limit = DEFAULT_PAGE, ...opts }: SandboxListOpts = {}) {
    const [first] = Object.entries(query.metadata ?? {});
    const label = first === undefined ? {} : { label: { name: first[0], value: first[1] } };
    this.#items = NativeSandbox.list({ ...clientOf(opts), ...label });
    this.#query = query;
    this.#limit = limit;
  }

  /** Whether there may be another page. */
  get hasNext(): boolean {
    return this.#hasNext;
  }

  /** The next page. */
  nextItems(): Promise<SandboxInfo[]> {
    if (!this.#hasNext) throw new SandboxError("There are no more pages.");
    return translating(async () => {
      const page: SandboxInfo[] = [];
      while (page.length < this.#limit) {
        const next = await this.#items.next();
        if (next.done) {
          this.#hasNext = false;
          break;
        }
        if (!ENDED.includes(next.value.state) && this.#fits(infoOf(next.value))) page.push(infoOf(next.value));
      }
      return page;
    });
  }

  #fits({ metadata, state, templateId }: SandboxInfo): boolean {
    const { metadata: wanted = {}, state: states, template } = this.#query;
    const isLabelled = Object.entries(wanted).every(([name, value]) => metadata[name] === value);
    return isLabelled && (states === undefined || states.includes(state)) && (template ?? templateId) === templateId;
  }
}

function clientOf({ apiKey, apiUrl }: ConnectionOpts): ClientOptions {
  return { ...(apiKey === undefined ? {} : { apiKey }), ...(apiUrl === undefined ? {} : { url: apiUrl }) };
}

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

function infoOf(record: SandboxRecord): SandboxInfo {
  return {
    sandboxId: record.sandbox_id,
    templateId: record.template_id,
    metadata: record.labels as Record<string, string>,
    startedAt: new Date(record.created_at),
    endAt: record.expires_at === null ? NEVER : new Date(record.expires_at),
    state: PAUSED.includes(record.state) ? "paused" : "running",
    cpuCount: record.vcpu_count,
    memoryMB: record.memory_mib,
  };
}
