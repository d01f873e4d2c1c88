/** Creation of sandboxes and their rooms: options, defaults, and the wait until a sandbox runs. */
import type { Calls } from "./calls.ts";
import { CLIENT_OPTIONS, type Client, type ClientOptions } from "./client.ts";
import { GoneError, NotFoundError, ProblemError, RoomdError, UsageError } from "./errors.ts";
import type { RoomCreateRequest, SandboxCreateRequest, Sandbox as SandboxRecord } from "./generated/schemas.ts";
import { roomNameOf } from "./names.ts";
import { checkOptions, namesOf, SANDBOX_SPELLINGS, type SandboxSpellings } from "./spellings.ts";
import { CALL_OPTIONS, type CallOptions, isNoConnection } from "./transport.ts";

/** Options of a new sandbox. */
export interface SandboxOptions extends CallOptions, SandboxSpellings {
  /** Name of the template; "default" by default. */
  template?: string;
  /** A snapshot of the room, instead of a template. */
  snapshot?: string;
  /** Memory in MiB; the template's by default. */
  memoryMib?: number;
  /** Number of virtual CPUs; 1 by default. */
  vcpus?: number;
  /** Environment variables of every command. */
  env?: Record<string, string>;
  /** Destinations to which the sandbox may connect, such as "packages.example.com:443"; "*": every public address. */
  egress?: readonly string[];
  /** Labels of your own, by which lists are filtered. */
  labels?: Record<string, string>;
  /** Time without use after which the sandbox is idle; `lifecycle.on_idle` is the action then. */
  idleTimeoutSeconds?: number;
  /** Lifetime of the sandbox since its creation. */
  maxDurationSeconds?: number;
  /** Idle time, idle action and wake reasons. */
  lifecycle?: SandboxCreateRequest["lifecycle"];
  /** Guest CID of the sandbox; a free one by default. */
  guestCid?: number;
}

/** Options of `Sandbox.create`. */
export interface OwnSandboxOptions extends SandboxOptions, ClientOptions {
  /** Whether the drive is kept for a day after `destroy`; it is deleted by default. */
  keep?: boolean;
  /** Lifetime of the sandbox's room; 86,400 by default, null: unlimited. */
  ttlSeconds?: number | null;
}

const OPTIONS: Record<Exclude<keyof SandboxOptions, keyof SandboxSpellings>, true> = {
  ...CALL_OPTIONS,
  template: true,
  snapshot: true,
  memoryMib: true,
  vcpus: true,
  env: true,
  egress: true,
  labels: true,
  idleTimeoutSeconds: true,
  maxDurationSeconds: true,
  lifecycle: true,
  guestCid: true,
};
const OWN_OPTIONS: Record<Exclude<keyof OwnSandboxOptions, keyof SandboxSpellings>, true> = {
  ...OPTIONS,
  ...CLIENT_OPTIONS,
  keep: true,
  ttlSeconds: true,
};

/** Selects the options of a new sandbox from an adapter's options. */
export function sandboxOptionsOf(options: SandboxOptions): SandboxOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(OPTIONS, name)));
}

/** Throws UsageError for options that `Sandbox.create` does not have. */
export function checkOwnOptions(options: OwnSandboxOptions): void {
  if (typeof options === "string") throw new UsageError(`Sandbox.create takes options: { template: "${options}" }.`);
  checkOptions("Sandbox.create", options, OWN_OPTIONS, SANDBOX_SPELLINGS);
  // Before its room is created.
  if (options.egress !== undefined) namesOf(options.egress, "egress");
}

/** Throws UsageError for options that `createSandbox` does not have. */
export function checkSandboxOptions(options: SandboxOptions): void {
  checkOptions("createSandbox", options, OPTIONS, SANDBOX_SPELLINGS);
}

/** Label of a room that was made for one sandbox and ends with it. */
export const OWN_ROOM_LABEL = "roomd-sdk/own";
/** Time to live of such a room, unless the sandbox lives longer. */
const ROOM_SECONDS = 86_400;
/** How much longer such a room lives than its sandbox. */
export const GRACE_SECONDS = 3600;
/** The longest time to live that the service accepts for a room. */
const MAX_ROOM_SECONDS = 31_536_000;
/** A sandbox with its own room hibernates after this time without use. */
const IDLE_SECONDS = 900;
/** Longest wait of one call for a starting sandbox. */
const WAIT_MS = 50_000;
const IS_STARTING: readonly SandboxRecord["state"][] = ["creating", "starting"];
const IS_OVER: readonly SandboxRecord["state"][] = ["failed", "destroying", "destroyed"];

/** Options of the room of a sandbox with a room of its own. */
export function ownRoomOf({ labels, maxDurationSeconds, ttlSeconds }: OwnSandboxOptions): Partial<RoomCreateRequest> {
  const least = maxDurationSeconds === undefined ? 0 : Math.min(maxDurationSeconds + GRACE_SECONDS, MAX_ROOM_SECONDS);
  const ttl = ttlSeconds === undefined ? Math.max(ROOM_SECONDS, least) : ttlSeconds;
  return { labels: { ...labels, [OWN_ROOM_LABEL]: "true" }, ...(ttl === null ? {} : { ttl_seconds: ttl }) };
}

/** The options with the default idle action of a sandbox with its own room, unless they have one. */
export function withIdleAction<Options extends SandboxOptions>(options: Options): Options {
  if (options.lifecycle !== undefined || options.idleTimeoutSeconds !== undefined) return options;
  return { ...options, lifecycle: { idle_after_seconds: IDLE_SECONDS, on_idle: "hibernate" } };
}

/** Creates a room, by default with a generated name. */
export function createRoom(client: Client, request: Partial<RoomCreateRequest> = {}, options: CallOptions = {}) {
  return client.call("room_create", { room_id: roomNameOf(options.idempotencyKey), ...request }, options);
}

/** Creates a sandbox and waits until it can run commands. Throws RoomdError if it does not start. */
export async function createSandbox(
  client: Client,
  roomId: string,
  agentId: string,
  options: SandboxOptions,
  calls: Calls,
): Promise<SandboxRecord> {
  const request = { room_id: roomId, ...wantedOf(agentId, options) };
  let record: SandboxRecord = await client.call("sandbox_create", request, calls.next());
  const { room_id, sandbox_id } = record;
  while (IS_STARTING.includes(record.state)) {
    const wait_ms = Math.round(Math.min(WAIT_MS, calls.leftMs));
    record = await client.call("sandbox_get", { room_id, sandbox: sandbox_id, wait_ms }, calls.next());
  }
  const { state, status } = record;
  if (IS_OVER.includes(state)) throw new RoomdError(`The sandbox is ${state}: ${status.message}`);
  return record;
}

/** Ends a resource; an already ended resource is not an error. */
export async function unlessGone(end: () => Promise<unknown>): Promise<void> {
  await end().catch((error: unknown) => {
    if (!isGone(error)) throw error;
  });
}

function isGone(error: unknown): boolean {
  if (error instanceof NotFoundError || error instanceof GoneError) return true;
  return error instanceof ProblemError && error.code === "room_destroying";
}

/** Whether an error means that the call was refused, or did not reach the service. */
export function isUndone(error: unknown): boolean {
  return isNoConnection(error) || error instanceof ProblemError;
}

/** Whether the idempotency key was used before with other options: then the room belongs to the earlier call. */
export function isOfEarlierCall(error: unknown): boolean {
  return error instanceof ProblemError && error.code === "idempotency_key_reused";
}

function wantedOf(agent_id: string, options: SandboxOptions): SandboxCreateRequest {
  const {
    template,
    snapshot,
    memoryMib,
    vcpus,
    env,
    egress,
    labels,
    idleTimeoutSeconds,
    maxDurationSeconds,
    lifecycle,
    guestCid,
  } = options;
  return {
    agent_id,
    ...(template === undefined ? {} : { template_id: template }),
    ...(snapshot === undefined ? {} : { snapshot_id: snapshot }),
    ...(memoryMib === undefined ? {} : { memory_mib: memoryMib }),
    ...(vcpus === undefined ? {} : { vcpu_count: vcpus }),
    ...(env === undefined ? {} : { env }),
    ...(egress === undefined ? {} : { egress_allowlist: namesOf(egress, "egress") }),
    ...(labels === undefined ? {} : { labels }),
    ...(idleTimeoutSeconds === undefined ? {} : { idle_timeout_seconds: idleTimeoutSeconds }),
    ...(maxDurationSeconds === undefined ? {} : { max_duration_seconds: maxDurationSeconds }),
    ...(lifecycle === undefined ? {} : { lifecycle }),
    ...(guestCid === undefined ? {} : { guest_cid: guestCid }),
  };
}
