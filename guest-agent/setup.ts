/**
 * Carries out a Welcome by direct system calls before any command may run: a clone must not share its twin's randomness, clock or names.
 *
 * A host that reconnects sends its Welcome again: then only randomness and clock are renewed. After a restore from saved memory, which the
 * Welcome states, the guest remounts its drive; as another sandbox, or one that was rolled back, it also renews its names and environment;
 * then the sandbox's own hooks run. Programs that ran when it was saved keep running.
 */
import type { Ready, Restored, Welcome } from "../shared/agent-protocol/messages.ts";
import type { AfterRestore } from "./after-restore.ts";
import { renewBootId } from "./boot-id.ts";
import { comeFirst } from "./cpu-priority.ts";
import type { Drive } from "./drive/drive.ts";
import type { Egress } from "./egress/egress.ts";
import { writeEtc } from "./etc.ts";
import { isEnvironment } from "./exec/environment.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { ROOM_ADDRESS, ROOM_NAME } from "./gateway/place.ts";
import { type Admitted, restoredIn } from "./host-auth.ts";
import { setKernelLimits } from "./kernel-limits.ts";
import * as libc from "./libc.ts";
import type { Start } from "./start.ts";

const MIN_ENTROPY_BYTES = 64;

/** System calls that change the machine. */
export type Machine = Pick<typeof libc, "addEntropy" | "setClock" | "setHostname"> & {
  writeEtc: typeof writeEtc;
  renewBootId: typeof renewBootId;
  setKernelLimits: typeof setKernelLimits;
};
const MACHINE: Machine = { ...libc, writeEtc, renewBootId, setKernelLimits };

type GuestSettings = Omit<Welcome, "generation" | "secret" | "proof">;
/** Executes a stage of the set-up and measures its duration. */
type Stage = (name: string, act: () => Promise<void> | void) => Promise<void>;

export class Setup {
  readonly #drive: Pick<Drive, "mount">;
  readonly #egress: Pick<Egress, "forbid" | "settled">;
  readonly #gateway: Pick<Gateway, "forbid">;
  readonly #start: Pick<Start, "goOn">;
  readonly #hooks: Pick<AfterRestore, "run">;
  readonly #machine: Machine;
  #turn: Promise<unknown> = Promise.resolve();
  #env: Record<string, string> = {};
  #done = false;
  /** The secret of the last completed restore. */
  #restoredBy: string | undefined;

  constructor(
    drive: Pick<Drive, "mount">,
    egress: Pick<Egress, "forbid" | "settled">,
    gateway: Pick<Gateway, "forbid">,
    start: Pick<Start, "goOn">,
    hooks: Pick<AfterRestore, "run">,
    machine: Machine = MACHINE,
  ) {
    this.#drive = drive;
    this.#egress = egress;
    this.#gateway = gateway;
    this.#start = start;
    this.#hooks = hooks;
    this.#machine = machine;
  }

  get done(): boolean {
    return this.#done;
  }

  get env(): Record<string, string> {
    return this.#env;
  }

  /**
   * Serialized: a host that reconnects may send a welcome while its first one still waits for the drive. Never throws: errors are in the
   * answer, and the next welcome retries.
   */
  carryOut(message: unknown, admitted: Admitted): Promise<Ready> {
    const turn = this.#turn.then(() => this.#carryOut(message, admitted));
    this.#turn = turn;
    return turn;
  }

  async #carryOut(message: unknown, { now, before }: Admitted): Promise<Ready> {
    const stages: Record<string, number> = {};
    const stage: Stage = async (name, act) => {
      const begin = performance.now();
      await act();
      stages[name] = Math.round((performance.now() - begin) * 1000) / 1000;
    };
    try {
      const welcome = parseWelcome(message);
      comeFirst(true);
      await stage("entropy", () => this.#machine.addEntropy(Buffer.from(welcome.entropy_b64, "base64")));
      await stage("clock", () => this.#machine.setClock(BigInt(welcome.clock_ns)));
      if (!this.#done) await this.#begin(welcome, stage);
      else if (welcome.restored) await this.#restore(welcome, welcome.restored, stage);
      return { ok: true, nonce: now.nonce, ...(before && { before: before.nonce }), stages_ms: stages };
    } catch (error) {
      return { ok: false, error: error instanceof Error ? error.message : String(error) };
    }
  }

  async #begin(welcome: GuestSettings, stage: Stage): Promise<void> {
    await this.#become(welcome, stage);
    await stage("start", () => this.#start.goOn());
    this.#env = welcome.env;
    this.#done = true;
  }

  async #restore(welcome: GuestSettings, { how, secret }: Restored, stage: Stage): Promise<void> {
    if (how === "resumed") await this.#mount(welcome, stage);
    else {
      // The host did not receive the ready for this welcome and repeats it.
      if (secret === this.#restoredBy) return;
      await this.#become(welcome, stage);
      this.#env = welcome.env;
    }
    await stage("hooks", () => this.#hooks.run(how, this.#env));
    this.#restoredBy = secret;
  }

  /** Takes its place in its room. Permissions that it no longer has are removed; permissions that it never had are not added. */
  async #become(welcome: GuestSettings, stage: Stage): Promise<void> {
    if (welcome.room !== true) await stage("room", () => this.#gateway.forbid());
    await stage("names", () => setNames(this.#machine, welcome));
    await stage("limits", () => this.#machine.setKernelLimits(welcome.memory_mib));
    await this.#mount(welcome, stage);
    await stage("egress", () => (welcome.egress === true ? this.#egress.settled() : this.#egress.forbid()));
  }

  async #mount({ drive }: GuestSettings, stage: Stage): Promise<void> {
    if (drive) await stage("mount", () => this.#drive.mount(drive));
  }
}

function parseWelcome(message: unknown): GuestSettings {
  if (typeof message !== "object" || message === null) throw new Error("welcome must be an object");
  const fields = message as Partial<Record<keyof Welcome, unknown>>;
  const { entropy_b64, clock_ns, hostname, machine_id, env, drive, egress, room, memory_mib } = fields;
  if (typeof entropy_b64 !== "string" || Buffer.from(entropy_b64, "base64").byteLength < MIN_ENTROPY_BYTES) {
    throw new Error(`entropy_b64 must hold ${MIN_ENTROPY_BYTES} bytes`);
  }
  if (typeof clock_ns !== "string" || !/^\d{1,19}$/.test(clock_ns)) throw new Error("clock_ns must be a number");
  if (typeof hostname !== "string" || !/^[\w.-]{1,64}$/.test(hostname)) throw new Error("hostname is malformed");
  if (typeof machine_id !== "string" || !/^[0-9a-f]{32}$/.test(machine_id)) throw new Error("machine_id is malformed");
  if (!isEnvironment(env)) throw new Error("env must map names to strings");
  if (drive !== null && !isDrive(drive)) throw new Error("drive must have tag and mount_point");
  if (memory_mib !== undefined && !isMemory(memory_mib)) throw new Error("memory_mib must be a number of MiB");
  const restored = restoredIn(message);
  return {
    ...{ entropy_b64, clock_ns, hostname, machine_id, env, drive, egress: egress === true, room: room === true },
    ...(memory_mib !== undefined && { memory_mib }),
    ...(restored && { restored }),
  };
}

function isMemory(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

export function isDrive(value: unknown): value is NonNullable<Welcome["drive"]> {
  if (typeof value !== "object" || value === null) return false;
  const { tag, mount_point } = value as Partial<Record<"tag" | "mount_point", unknown>>;
  return typeof tag === "string" && tag !== "" && typeof mount_point === "string" && mount_point.startsWith("/");
}

function setNames(
  { setHostname, writeEtc, renewBootId }: Machine,
  { hostname, machine_id, room }: GuestSettings,
): void {
  const roomLine = room === true ? `${ROOM_ADDRESS} ${ROOM_NAME}\n` : "";
  setHostname(hostname);
  writeEtc("hostname", `${hostname}\n`);
  writeEtc(
    "hosts",
    `127.0.0.1 localhost\n127.0.1.1 ${hostname}\n::1 localhost ip6-localhost ip6-loopback\n${roomLine}`,
  );
  writeEtc("machine-id", `${machine_id}\n`);
  renewBootId();
}
