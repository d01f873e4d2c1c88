/**
 * Owns what a Welcome asks for, done by direct system calls before any command may run: a clone must not share its
 * twin's randomness, clock or names.
 *
 * A host that comes back sends its Welcome again: then only randomness and clock are renewed.
 */
import type { Ready, Welcome } from "../shared/agent-protocol/messages.ts";
import type { Drive } from "./drive/drive.ts";
import type { Egress } from "./egress/egress.ts";
import { writeEtc } from "./etc.ts";
import { isEnvironment } from "./exec/environment.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { ROOM_ADDRESS, ROOM_NAME } from "./gateway/place.ts";
import * as libc from "./libc.ts";
import { comeFirst } from "./precedence.ts";
import { randomHex } from "./random.ts";
import type { Start } from "./start.ts";

const NONCE_BYTES = 16;
const MIN_ENTROPY_BYTES = 64;

export class Setup {
  readonly #drive: Drive;
  readonly #egress: Pick<Egress, "forbid" | "settled">;
  readonly #gateway: Pick<Gateway, "forbid">;
  readonly #start: Pick<Start, "goOn">;
  #turn: Promise<unknown> = Promise.resolve();
  #nonce = "";
  #env: Record<string, string> = {};
  #done = false;

  constructor(
    drive: Drive,
    egress: Pick<Egress, "forbid" | "settled">,
    gateway: Pick<Gateway, "forbid">,
    start: Pick<Start, "goOn">,
  ) {
    this.#drive = drive;
    this.#egress = egress;
    this.#gateway = gateway;
    this.#start = start;
  }

  get done(): boolean {
    return this.#done;
  }

  get env(): Record<string, string> {
    return this.#env;
  }

  /**
   * One after another: a host that comes back may speak while its first welcome still waits for the drive.
   * Never throws: what went wrong is in the answer, and the next welcome tries again.
   */
  carryOut(message: unknown): Promise<Ready> {
    const turn = this.#turn.then(() => this.#carryOut(message));
    this.#turn = turn;
    return turn;
  }

  async #carryOut(message: unknown): Promise<Ready> {
    const stages: Record<string, number> = {};
    const stage = async (name: string, act: () => Promise<void> | void) => {
      const begin = performance.now();
      await act();
      stages[name] = Math.round((performance.now() - begin) * 1000) / 1000;
    };
    try {
      const welcome = parseWelcome(message);
      comeFirst(true);
      await stage("entropy", () => libc.addEntropy(Buffer.from(welcome.entropy_b64, "base64")));
      await stage("clock", () => libc.setClock(BigInt(welcome.clock_ns)));
      if (!this.#done) {
        this.#nonce ||= randomHex(NONCE_BYTES);
        if (welcome.room !== true) await stage("room", () => this.#gateway.forbid());
        await stage("names", () => setNames(welcome));
        const { drive } = welcome;
        if (drive) await stage("mount", () => this.#drive.mount(drive));
        await stage("egress", () => (welcome.egress === true ? this.#egress.settled() : this.#egress.forbid()));
        await stage("start", () => this.#start.goOn());
        this.#env = welcome.env;
        this.#done = true;
      }
      return { ok: true, nonce: this.#nonce, stages_ms: stages };
    } catch (error) {
      return { ok: false, error: error instanceof Error ? error.message : String(error) };
    }
  }
}

function parseWelcome(message: unknown): Omit<Welcome, "generation"> {
  if (typeof message !== "object" || message === null) throw new Error("welcome must be an object");
  const fields = message as Partial<Record<keyof Welcome, unknown>>;
  const { entropy_b64, clock_ns, hostname, machine_id, env, drive, egress, room } = fields;
  if (typeof entropy_b64 !== "string" || Buffer.from(entropy_b64, "base64").byteLength < MIN_ENTROPY_BYTES) {
    throw new Error(`entropy_b64 must hold ${MIN_ENTROPY_BYTES} bytes`);
  }
  if (typeof clock_ns !== "string" || !/^\d{1,19}$/.test(clock_ns)) throw new Error("clock_ns must be a number");
  if (typeof hostname !== "string" || !/^[\w.-]{1,64}$/.test(hostname)) throw new Error("hostname is not one");
  if (typeof machine_id !== "string" || !/^[0-9a-f]{32}$/.test(machine_id)) throw new Error("machine_id is not one");
  if (!isEnvironment(env)) throw new Error("env must map names to strings");
  if (drive !== null && !isDrive(drive)) throw new Error("drive must have tag and mount_point");
  return { entropy_b64, clock_ns, hostname, machine_id, env, drive, egress: egress === true, room: room === true };
}

export function isDrive(value: unknown): value is NonNullable<Welcome["drive"]> {
  if (typeof value !== "object" || value === null) return false;
  const { tag, mount_point } = value as Partial<Record<"tag" | "mount_point", unknown>>;
  return typeof tag === "string" && tag !== "" && typeof mount_point === "string" && mount_point.startsWith("/");
}

function setNames({ hostname, machine_id, room }: Pick<Welcome, "hostname" | "machine_id" | "room">): void {
  const roomLine = room === true ? `${ROOM_ADDRESS} ${ROOM_NAME}\n` : "";
  libc.setHostname(hostname);
  writeEtc("hostname", `${hostname}\n`);
  writeEtc(
    "hosts",
    `127.0.0.1 localhost\n127.0.1.1 ${hostname}\n::1 localhost ip6-localhost ip6-loopback\n${roomLine}`,
  );
  writeEtc("machine-id", `${machine_id}\n`);
}
