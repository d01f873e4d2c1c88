/**
 * A workload on a daemon without guests, and the time of each acknowledged or returned fact: rooms, messages, files, appended lines, and
 * audit records. Later the checker looks for all of it in a data_dir, as a daemon would find it after a power loss.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openConnection, rawQuery } from "../../../daemon/db/client.ts";
import { writeWholeLog } from "../../../daemon/db/log-sync.ts";
import { filesOf } from "../../../daemon/domain/audit/anchors/heads.ts";
import { verifyAll } from "../../../daemon/domain/audit/chain/verify-all.ts";
import type { Answer, TestDaemon } from "../daemon.ts";
import type { Chance } from "../random.ts";

interface Message {
  message_id: string;
  seq: number;
  payload: string;
}

type Fact =
  | { is: "room"; room_uid: string; state: "active" | "destroyed" }
  | { is: "message"; room_uid: string; message: Message }
  | { is: "file"; room_uid: string; path: string; content: string }
  | { is: "line"; room_uid: string; path: string; content: string }
  | { is: "record"; request_id: string };

const FILES = 4;
const LARGE = 40_000;

export class Acknowledged {
  readonly #daemon: TestDaemon;
  readonly #facts: { at: number; fact: Fact }[] = [];
  /** Requested contents by room and path, in order. */
  readonly #asked = new Map<string, string[]>();
  #isOver = false;
  unanswered = 0;

  constructor(daemon: TestDaemon) {
    this.#daemon = daemon;
  }

  get count(): number {
    return this.#facts.length;
  }

  /** Seconds since the epoch at which the last answer arrived. */
  get lastAt(): number {
    return this.#facts.at(-1)?.at ?? 0;
  }

  /** Works until `isOver`, or until the daemon no longer answers. Clients work concurrently, each in its own room. */
  async work(clients: number, chance: Chance, isOver: () => boolean): Promise<void> {
    this.#isOver = false;
    await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        const name = `client-${index}-${chance.whole(0, 1e9)}`;
        const room = await this.#room(name);
        for (const agent of ["a", "b"]) {
          await this.#call("PUT", `/v1/rooms/${name}/agents/${agent}/subscriptions`, { topics: ["t"] });
        }
        for (let step = 0; room !== null && !this.#isOver && !isOver(); step++)
          await this.#step(name, room, step, chance);
      }),
    );
  }

  async #step(name: string, room_uid: string, step: number, chance: Chance): Promise<void> {
    const path = `/v1/rooms/${name}`;
    const is = chance.whole(0, 9);
    if (is <= 4) {
      const payload = `${step} ${"x".repeat(chance.whole(0, 3) === 0 ? chance.whole(0, LARGE) : 100)}`;
      const sent = await this.#call("POST", `${path}/messages`, { source: "a", destination: "b", payload });
      if (sent) this.#add({ is: "message", room_uid, message: { ...pick(sent.body), payload } });
    } else if (is === 5) {
      const seen = await this.#call("GET", `${path}/messages?agent_id=b&after=0&limit=20`);
      for (const message of seen?.body.items ?? [])
        this.#add({ is: "message", room_uid, message: { ...pick(message), payload: message.payload } });
    } else if (is <= 7) {
      const file = `dir-${chance.whole(0, 1)}/file-${chance.whole(0, FILES - 1)}`;
      const content = `${step} ${"y".repeat(chance.whole(0, 20_000))}`;
      this.#ask(room_uid, file, content);
      const written = await this.#call("POST", `${path}/drive/write`, { path: file, content });
      if (written) this.#add({ is: "file", room_uid, path: file, content });
    } else if (is === 8) {
      const content = `line ${step}\n`;
      const written = await this.#call("POST", `${path}/drive/write`, { path: "lines", content, append: true });
      if (written) this.#add({ is: "line", room_uid, path: "lines", content });
    } else {
      const other = `${name}-${step}`;
      const made = await this.#room(other);
      if (made && (await this.#call("DELETE", `/v1/rooms/${other}?drive=delete`)))
        this.#add({ is: "room", room_uid: made, state: "destroyed" });
    }
  }

  async #room(name: string): Promise<string | null> {
    const made = await this.#call("POST", "/v1/rooms", { room_id: name });
    if (made) this.#add({ is: "room", room_uid: made.body.room_uid, state: "active" });
    return made?.body.room_uid ?? null;
  }

  /** The answer to a call that succeeded; null if it did not. */
  async #call(method: string, path: string, body?: unknown): Promise<Answer | null> {
    let answer: Answer;
    try {
      answer = await this.#daemon.api(method, path, body, {}, AbortSignal.timeout(30_000));
    } catch {
      this.#isOver = true;
      this.unanswered++;
      return null;
    }
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    if (method !== "GET") this.#add({ is: "record", request_id: String(answer.headers.get("x-request-id")) });
    return answer;
  }

  /** The clock counts whole milliseconds: an answer never seems earlier than it was. */
  #add(fact: Fact): void {
    this.#facts.push({ at: (Date.now() + 1) / 1000, fact });
  }

  #ask(room_uid: string, path: string, content: string): void {
    const key = `${room_uid}/${path}`;
    this.#asked.set(key, [...(this.#asked.get(key) ?? []), content]);
  }

  /** Answers that arrived before `time` and are no longer true of a data_dir, and damage of its database or audit, in sentences. */
  async brokenIn(dataDir: string, time: number): Promise<string[]> {
    const file = join(dataDir, "roomd.db");
    const discarded = writeWholeLog(file, { afterFailure: false });
    const connection = openConnection(file);
    try {
      const integrity = connection.pragma("integrity_check");
      const { verdicts } = await verifyAll(connection.queries, filesOf(join(dataDir, "audit-heads.ndjson")));
      const facts = this.#facts.filter(({ at }) => at < time).map(({ fact }) => fact);
      return [
        // One may be unacknowledged: the daemon commits nothing before the sync of its last commit.
        ...(discarded.commits > 1 ? [`${discarded.commits} commits were discarded`] : []),
        ...(integrity === "ok" ? [] : [`integrity_check: ${integrity}`]),
        ...verdicts.filter(({ ok }) => !ok).map((verdict) => `audit: ${JSON.stringify(verdict)}`),
        ...this.#rowsBroken(connection.queries, facts),
        ...this.#filesBroken(dataDir, facts),
      ];
    } catch (error) {
      return [`the database cannot be read: ${error}`];
    } finally {
      connection.close();
    }
  }

  #rowsBroken(queries: Parameters<typeof rawQuery>[0], facts: readonly Fact[]): string[] {
    const state = rawQuery<{ state: string }>(queries, "SELECT state FROM rooms WHERE room_uid = ?");
    const sent = rawQuery<Message>(
      queries,
      "SELECT message_id, seq, payload FROM messages WHERE room_uid = ? AND seq = ?",
    );
    const records = new Set(
      rawQuery<{ request_id: string }>(
        queries,
        "SELECT request_id FROM audit WHERE request_id IS NOT NULL",
      )([]).map(({ request_id }) => request_id),
    );
    const broken: string[] = [];
    const destroyed = new Set(
      facts.flatMap((fact) => (fact.is === "room" && fact.state === "destroyed" ? [fact.room_uid] : [])),
    );
    for (const fact of facts) {
      if (fact.is === "room") {
        const [row] = state([fact.room_uid]);
        if (!row) broken.push(`room ${fact.room_uid} is gone`);
        else if (destroyed.has(fact.room_uid) && row.state !== "destroyed")
          broken.push(`room ${fact.room_uid} is ${row.state}`);
      } else if (fact.is === "message") {
        const [row] = sent([fact.room_uid, fact.message.seq]);
        if (row?.message_id !== fact.message.message_id || row.payload !== JSON.stringify(fact.message.payload))
          broken.push(`message ${fact.message.seq} of ${fact.room_uid} is ${row?.message_id ?? "gone"}`);
      } else if (fact.is === "record" && !records.has(fact.request_id)) {
        broken.push(`request ${fact.request_id} is not in the audit`);
      }
    }
    return broken;
  }

  #filesBroken(dataDir: string, facts: readonly Fact[]): string[] {
    const last = new Map<string, string>();
    const lines = new Map<string, string[]>();
    for (const fact of facts) {
      if (fact.is === "file") last.set(`${fact.room_uid}/${fact.path}`, fact.content);
      if (fact.is === "line") {
        const key = `${fact.room_uid}/${fact.path}`;
        lines.set(key, [...(lines.get(key) ?? []), fact.content]);
      }
    }
    const read = (key: string) => {
      const [room_uid = "", ...path] = key.split("/");
      const at = join(dataDir, "rooms", room_uid, "drive", ...path);
      return existsSync(at) ? readFileSync(at, "utf8") : null;
    };
    const broken: string[] = [];
    for (const [key, contents] of this.#asked) {
      const content = read(key);
      const acknowledged = last.get(key);
      // Any of the unacknowledged writes may be there, whole.
      const from = acknowledged === undefined ? 0 : contents.indexOf(acknowledged);
      const isAsked = content === null ? acknowledged === undefined : contents.slice(from).includes(content);
      if (!isAsked) broken.push(`file ${key} is ${content === null ? "gone" : `${content.length} bytes of no write`}`);
    }
    for (const [key, expected] of lines) {
      const content = read(key) ?? "";
      let at = 0;
      for (const line of expected) {
        const found = content.indexOf(line, at);
        if (found < 0) broken.push(`${key} has lost ${line.trim()}`);
        else at = found + line.length;
      }
    }
    return broken;
  }
}

const pick = ({ message_id, seq }: { message_id: string; seq: number }) => ({ message_id, seq });
