/**
 * A ledger of the state that a daemon has acknowledged, and a later check that all of it still holds. A missing answer promises nothing:
 * the request may have taken effect or not, wholly.
 */
import { createHash } from "node:crypto";
import type { Answer, Json, TestDaemon } from "../daemon.ts";
import { processesOf, until } from "../guests.ts";

/** How long an answer may take before the call is taken for lost, as a client would. */
const CALL_DEADLINE_MS = 90_000;
const TAKE_OVER_DEADLINE_MS = 30_000;

interface KeptFile {
  /** Digest of the last acknowledged content; null if none. */
  sha256: string | null;
  /** Digests of contents written since without an answer. */
  maybe: Set<string>;
}

interface KeptSandbox {
  room: string;
  agent_id: string;
  guest_cid: number;
  qemu: number;
  boot_id: string;
  /** Whether it was hibernated or rolled back since its QEMU was looked up: it may have another QEMU by now, or be hibernated. */
  isRestless: boolean;
  /** Commands by their exec_id: whether their end was acknowledged. */
  runs: Map<string, boolean>;
}

export class Ledger {
  readonly #daemon: TestDaemon;
  readonly rooms = new Map<string, string>();
  readonly sandboxes = new Map<string, KeptSandbox>();
  readonly #files = new Map<string, KeptFile>();
  readonly #lines = new Map<string, string[]>();
  /** Their paths, with the digest at the time of acknowledgement. */
  readonly #snapshots = new Map<string, string>();
  readonly #gone: string[] = [];
  /** Answers that no fault excuses. */
  readonly #unexpected: string[] = [];
  acknowledged = 0;
  unanswered = 0;

  constructor(daemon: TestDaemon) {
    this.#daemon = daemon;
  }

  /** The answer to a call that succeeded; null when it did not, or none came. */
  async #call(method: string, path: string, body?: unknown, key?: string): Promise<Json | null> {
    const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
    let answer: Answer;
    try {
      answer = await this.#daemon.api(method, path, body, headers, AbortSignal.timeout(CALL_DEADLINE_MS));
    } catch {
      this.unanswered++;
      return null;
    }
    if (answer.status >= 200 && answer.status < 300) {
      this.acknowledged++;
      return answer.body;
    }
    if (answer.status === 500) this.#unexpected.push(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return null;
  }

  async createRoom(roomId: string): Promise<void> {
    const room = await this.#call("POST", "/v1/rooms", { room_id: roomId }, crypto.randomUUID());
    if (room) this.rooms.set(roomId, room.room_uid);
  }

  /** Everything in the room is no longer promised from the moment of the call on. */
  async destroyRoom(roomId: string): Promise<void> {
    this.rooms.delete(roomId);
    for (const [id, { room }] of this.sandboxes) if (room === roomId) this.sandboxes.delete(id);
    for (const path of this.#snapshots.keys()) {
      if (path.startsWith(`/v1/rooms/${roomId}/`)) this.#snapshots.delete(path);
    }
    for (const kept of [this.#files, this.#lines]) {
      for (const key of kept.keys()) if (key.startsWith(`${roomId}/`)) kept.delete(key);
    }
    const done = await this.#call("DELETE", `/v1/rooms/${roomId}?drive=delete`);
    if (done?.state === "destroyed") this.#gone.push(`/v1/rooms/${roomId}`);
  }

  /** Resolves to the sandbox's id, once it is acknowledged. */
  async createSandbox(room: string, agent_id: string, guest_cid: number): Promise<string | null> {
    const body = { agent_id, guest_cid, memory_mib: 256 };
    const made = await this.#call("POST", `/v1/rooms/${room}/sandboxes/from-template`, body, crypto.randomUUID());
    if (made?.state !== "running") return null;
    const [qemu = 0] = processesOf(this.#daemon, "qemu", made.sandbox_id);
    this.sandboxes.set(made.sandbox_id, {
      room,
      agent_id,
      guest_cid,
      qemu,
      boot_id: "",
      isRestless: false,
      runs: new Map(),
    });
    return made.sandbox_id;
  }

  /** Hibernates and resumes it: its state must be unchanged. */
  async sleepAndWake(sandboxId: string): Promise<void> {
    const kept = this.sandboxes.get(sandboxId);
    if (!kept) return;
    kept.isRestless = true;
    const path = `/v1/rooms/${kept.room}/sandboxes/${sandboxId}`;
    if (await this.#call("POST", `${path}/hibernate`)) await this.#call("POST", `${path}/resume`);
  }

  /** Takes a snapshot, and deletes an earlier one: the sandbox keeps running. */
  async snapshot(sandboxId: string): Promise<void> {
    const kept = this.sandboxes.get(sandboxId);
    if (!kept) return;
    const key = crypto.randomUUID();
    const taken = await this.#call("POST", `/v1/rooms/${kept.room}/sandboxes/${sandboxId}/snapshots`, {}, key);
    const [before] = this.#snapshots;
    if (taken) this.#snapshots.set(`/v1/rooms/${kept.room}/snapshots/${taken.snapshot_id}`, taken.digest);
    if (!before || this.#snapshots.size < 3) return;
    this.#snapshots.delete(before[0]);
    if (await this.#call("DELETE", before[0])) this.#gone.push(before[0]);
  }

  async destroySandbox(sandboxId: string, room: string): Promise<boolean> {
    this.sandboxes.delete(sandboxId);
    const done = await this.#call("DELETE", `/v1/rooms/${room}/sandboxes/${sandboxId}`);
    if (done) this.#gone.push(`/v1/rooms/${room}/sandboxes/${sandboxId}`);
    return done !== null;
  }

  /** A sandbox that a test has harmed owes nothing from now on. */
  forgive(sandboxId: string): void {
    this.sandboxes.delete(sandboxId);
  }

  /** Runs a command that leaves a mark in the guest each time it runs. */
  async exec(sandboxId: string): Promise<void> {
    const kept = this.sandboxes.get(sandboxId);
    if (!kept) return;
    const exec_id = `run-${kept.runs.size}`;
    kept.runs.set(exec_id, false);
    const done = await this.#call("POST", `/v1/rooms/${kept.room}/sandboxes/${sandboxId}/exec`, {
      command: `echo ${exec_id} >> /root/runs; cat /proc/sys/kernel/random/boot_id`,
      exec_id,
    });
    if (done === null) return;
    if (done.exit_code !== 0) this.#unexpected.push(`${exec_id} in ${sandboxId}: ${JSON.stringify(done)}`);
    kept.boot_id ||= String(done.stdout);
    kept.runs.set(exec_id, true);
  }

  async write(room: string, path: string, content: string): Promise<void> {
    const sha256 = createHash("sha256").update(content).digest("hex");
    const file = this.#files.get(`${room}/${path}`) ?? { sha256: null, maybe: new Set() };
    this.#files.set(`${room}/${path}`, file);
    file.maybe.add(sha256);
    const written = await this.#call("POST", `/v1/rooms/${room}/drive/write`, { path, content });
    if (!written) return;
    if (written.sha256 !== sha256) this.#unexpected.push(`${path} was written as ${written.sha256}, not ${sha256}`);
    file.sha256 = sha256;
    file.maybe.clear();
  }

  async append(room: string, path: string, line: string): Promise<void> {
    const done = await this.#call("POST", `/v1/rooms/${room}/drive/write`, { path, content: line, append: true });
    if (!done) return;
    this.#lines.set(`${room}/${path}`, [...(this.#lines.get(`${room}/${path}`) ?? []), line]);
  }

  /** Everything acknowledged that is no longer so, in sentences. */
  async broken(): Promise<string[]> {
    const found = await Promise.all([
      ...[...this.rooms].map(([id, uid]) => this.#roomBroken(id, uid)),
      ...[...this.sandboxes].map(([id, kept]) => this.#sandboxBroken(id, kept)),
      ...[...this.#files].map(([key, kept]) => this.#fileBroken(key, kept)),
      ...[...this.#lines].map(([key, lines]) => this.#linesBroken(key, lines)),
      ...[...this.#snapshots].map(async ([path, digest]) => {
        const { body } = await this.#daemon.api("GET", path);
        return body.digest === digest ? [] : [`${path} was taken as ${digest} and is ${JSON.stringify(body)}`];
      }),
      ...this.#gone.map(async (path) => {
        const { status } = await this.#daemon.api("GET", path);
        return status === 404 ? [] : [`${path} was destroyed and answers ${status}`];
      }),
    ]);
    return [...this.#unexpected, ...found.flat()];
  }

  async #roomBroken(roomId: string, uid: string): Promise<string[]> {
    const { body } = await this.#daemon.api("GET", `/v1/rooms/${roomId}`);
    return body.room_uid === uid ? [] : [`room ${roomId} was created as ${uid} and is ${JSON.stringify(body)}`];
  }

  async #sandboxBroken(sandboxId: string, kept: KeptSandbox): Promise<string[]> {
    const path = `/v1/rooms/${kept.room}/sandboxes/${sandboxId}`;
    let { body } = await this.#daemon.api("GET", path);
    if (kept.isRestless && body.state === "hibernated") ({ body } = await this.#daemon.api("POST", `${path}/resume`));
    if (body.state !== "running" || body.guest_cid !== kept.guest_cid) {
      return [`sandbox ${sandboxId} was running and is ${JSON.stringify(body)}`];
    }
    const [qemu] = processesOf(this.#daemon, "qemu", sandboxId);
    if (kept.isRestless) Object.assign(kept, { qemu, isRestless: false });
    if (qemu !== kept.qemu) return [`sandbox ${sandboxId} had QEMU ${kept.qemu} and has ${qemu}`];
    const command = "cat /proc/sys/kernel/random/boot_id /root/runs 2>/dev/null; true";
    const done = await until(
      `sandbox ${sandboxId} runs a command`,
      async () => {
        const answer = await this.#daemon.api("POST", `${path}/exec`, { command });
        return answer.status === 200 ? answer.body : null;
      },
      TAKE_OVER_DEADLINE_MS,
    ).catch((error: unknown) => String(error));
    if (typeof done === "string")
      return [`${done}: ${JSON.stringify((await this.#daemon.api("GET", path)).body.status)}`];
    const [boot_id, ...runs] = String(done.stdout).trim().split("\n");
    const countOf = (id: string) => runs.filter((each) => each === id).length;
    return [
      ...(kept.boot_id === "" || kept.boot_id.trim() === boot_id ? [] : [`sandbox ${sandboxId} was booted again`]),
      ...[...kept.runs].flatMap(([id, acknowledged]) => {
        const times = countOf(id);
        if (times > 1) return [`${id} ran ${times} times in ${sandboxId}`];
        return acknowledged && times === 0 ? [`${id} was acknowledged and left no mark in ${sandboxId}`] : [];
      }),
    ];
  }

  async #fileBroken(key: string, kept: KeptFile): Promise<string[]> {
    const { status, body } = await this.#read(key);
    if (status === 404) return kept.sha256 === null ? [] : [`${key} was written and is gone`];
    if (body.sha256 === kept.sha256 || kept.maybe.has(body.sha256)) return [];
    return [`${key} was written as ${kept.sha256} and is ${body.sha256 ?? JSON.stringify(body)}`];
  }

  async #linesBroken(key: string, lines: readonly string[]): Promise<string[]> {
    const { body } = await this.#read(key);
    let at = 0;
    for (const line of lines) {
      const found = String(body.content).indexOf(line, at);
      if (found < 0) return [`${key} lost the line ${line.slice(0, 60)} that was added to it`];
      at = found + line.length;
    }
    return [];
  }

  #read(key: string): Promise<Answer> {
    const [room, ...path] = key.split("/");
    return this.#daemon.api("GET", `/v1/rooms/${room}/drive/read?path=${path.join("/")}`);
  }
}
