/** Calls about executions of one running sandbox, with an audit in memory, and a guest agent that the test plays. */

import { UnkeptEffects } from "../../../../daemon/core/call/call-effects.ts";
import { type Caller, type KeyCall, NO_TRANSFER } from "../../../../daemon/core/call/operation.ts";
import { RequestCounts } from "../../../../daemon/core/call/request-counts.ts";
import { NO_TRACES, untraced } from "../../../../daemon/core/call/traces.ts";
import { Published } from "../../../../daemon/core/concurrency/published.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { appendAudit, listAudit } from "../../../../daemon/domain/audit/index.ts";
import { Meter } from "../../../../daemon/domain/orgs/index.ts";
import type { SandboxDeps } from "../../../../daemon/domain/sandboxes/deps.ts";
import { Completions } from "../../../../daemon/domain/sandboxes/executions/completion.ts";
import { makeExecutions } from "../../../../daemon/domain/sandboxes/executions/index.ts";
import type { Supervisors } from "../../../../daemon/domain/sandboxes/lifecycle/supervisors.ts";
import { Waking } from "../../../../daemon/domain/sandboxes/lifecycle/waking.ts";
import { insertSandbox } from "../../../../daemon/domain/sandboxes/store.ts";
import type { SandboxRow } from "../../../../daemon/domain/sandboxes/table.ts";
import { makeIdempotencyStore } from "../../../../daemon/edge/pipeline/idempotency-step.ts";
import { makePipeline, type Pipeline, type PipelineReply } from "../../../../daemon/edge/pipeline/pipeline.ts";
import { standalone } from "../../../../daemon/edge/pipeline/placement.ts";
import type { ExecState } from "../../../../shared/agent-protocol/messages.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { type Asked, PlayedAgent, stateOf } from "../executions/agent-fixture.ts";
import { FIELDS, insertRoom } from "./sandbox-fixture.ts";

const NO_LIMIT = { perSecond: 0, burst: 0 };
const CALLER = {
  ...{ org_id: "org_1", key_id: "kid_1", name: "mine", plan: "free", scopes: ["exec"] },
  ...{ room_ids: null, agent_id: null, expires_at: null },
} as unknown as Caller;

const ROW = {
  sandbox_id: "sbx_1",
  room_uid: "rom_1",
  org_id: "org_1",
  agent_id: "a",
  state: "running",
  status_reason: "ready",
} as unknown as SandboxRow;
const ROOM = { room_uid: "rom_1", room_id: "r", state: "active" };

export interface Guest {
  /** Result of exec_list, once. */
  listed: ExecState[];
  /** Next result of exec_ended. */
  ended: ExecState[];
  /** Answers all other requests. */
  answer(stream: PlayedAgent["streams"][number], request: Asked): void;
}

/** Work of which a record is kept. */
class TestWork extends UnkeptEffects {
  #along = () => {};
  #hear: (recorded: boolean) => void = () => {};

  override along(write: () => void): void {
    this.#along = write;
  }

  override whenSettled(hear: (recorded: boolean) => void): void {
    this.#hear = hear;
  }

  writeAlong(): void {
    this.#along();
  }

  settle(): void {
    this.#hear(true);
  }
}

export class ExecutionsFixture {
  readonly #connection = openConnection(":memory:");
  readonly database: ReturnType<typeof makeDatabase>;
  readonly meter: Meter;
  readonly agent: PlayedAgent;
  readonly guest: Guest = { listed: [], ended: [], answer: () => {} };
  /** Executions that the guest need not report again. */
  readonly settled: string[] = [];
  readonly saved: { path: string; done: PromiseWithResolvers<void> }[] = [];
  readonly row = ROW;
  /** The key of the call that came last ends. */
  cutKey = () => {};
  /** Settles when the guest's link is there. */
  linked: Promise<void> = Promise.resolve();
  ends: Completions;
  /** How much is done for which the sandbox is in use. */
  uses = 0;
  #executions: ReturnType<typeof makeExecutions>;
  readonly #state = new Published<SandboxRow>(ROW);
  readonly #told: (() => void)[] = [];
  #daemon = 1;
  /** Why outputs cannot be saved. */
  unsaved: Error | null = null;
  readonly #road: Pipeline;
  /** Number of executions that run, as far as the host knows. */
  get running(): number {
    return this.ends.running(this.row.sandbox_id).length;
  }
  #committed = Promise.withResolvers<void>();
  #flushed: Promise<void> = Promise.resolve();

  constructor() {
    migrate(this.#connection);
    insertRoom(this.#connection);
    this.database = makeDatabase(this.#connection);
    insertSandbox(this.database.queries, { ...FIELDS, ...ROW });
    const database: ReturnType<typeof makeDatabase> = {
      ...this.database,
      commit: async (work, vital) => {
        const value = await this.database.commit(work, vital);
        this.#committed.resolve();
        await this.#flushed;
        return value;
      },
    };
    this.#road = makePipeline({
      traces: NO_TRACES,
      authenticate: () => CALLER,
      database,
      answers: makeIdempotencyStore(database),
      log: makeLog("error", () => {}),
      failedLoginsPerMinute: 0,
      hold: (_, cut) => {
        this.cutKey = cut;
        return () => {};
      },
      requireSpace: () => {},
      requireProof: () => {},
      auditReads: true,
      rates: { keys: NO_LIMIT, guests: NO_LIMIT },
      placement: standalone("host"),
      requests: new RequestCounts(),
    });
    this.meter = new Meter(this.database);
    this.agent = new PlayedAgent((stream, request) => {
      if (request.method === "exec_list") {
        const { after = 0 } = request;
        return stream.finish({ executions: this.guest.listed.filter(({ number }) => number > after).slice(0, 40) });
      }
      if (request.method === "exec_ended") {
        this.settled.push(...(request as unknown as { settled: string[] }).settled);
        const tell = () => stream.finish({ executions: this.guest.ended.splice(0) });
        return this.guest.ended.length > 0 ? tell() : void this.#told.push(tell);
      }
      if (request.method === "exec_note") return stream.finish({ execution: stateOf(request.exec_id) });
      this.guest.answer(stream, request);
    });
    [this.ends, this.#executions] = this.#make();
  }

  /** Another daemon starts: all state is lost except the audit. */
  restart(): void {
    this.#daemon++;
    this.#told.splice(0);
    this.agent.drop();
    [this.ends, this.#executions] = this.#make();
  }

  tell(ended: ExecState[]): void {
    this.guest.ended.push(...ended);
    for (const tell of this.#told.splice(0)) tell();
  }

  /** The verb's work, as the road has it done. */
  async run(name: string, input: object, more: Partial<KeyCall> = {}) {
    const { call, work, verb } = this.#call(name, input, more);
    try {
      const done = await verb();
      await this.database.commit(() => work.writeAlong());
      work.settle();
      return { call, body: done.body as Record<string, unknown> };
    } catch (error) {
      work.settle();
      throw error;
    }
  }

  /** The same with the call's own record, and a daemon that is killed before or after that is kept: true when it was answered. */
  async recorded(name: string, input: object, killed?: "before its record" | "after its record"): Promise<boolean> {
    const { call, work, verb, event } = this.#call(name, input);
    const daemon = this.#daemon;
    const at = new Date().toISOString();
    await verb();
    if (killed === "before its record") this.restart();
    if (daemon !== this.#daemon) return false;
    await this.database.commit((queries) => {
      const { org_id, room_uid, sandbox_id } = ROW;
      const actor = { type: "key", id: "kid_1", name: "mine" };
      const of = { org_id, room_uid, sandbox_id, actor, source: "rest" as const };
      appendAudit(queries, { ...of, event, outcome: "success", at, ...call.audit });
      work.writeAlong();
    });
    if (killed === "after its record") this.restart();
    if (daemon !== this.#daemon) return false;
    work.settle();
    return true;
  }

  /** The call from its key to its record. */
  walk(name: string, input: object): Promise<PipelineReply> {
    return this.#road.run(this.#verb(name), {
      ...{ source: "rest", request_id: "req_1", ip: null, authorization: "Bearer key", token: null, path: "/" },
      params: { room_id: "r", sandbox: "a" },
      query: () => ({}),
      body: async () => ({ fields: { ...input }, sha256: "same" }),
      idempotency_key: null,
      trace: null,
      transfer: NO_TRANSFER,
      signal: new AbortController().signal,
    });
  }

  /** The road's next commit is written, and takes until `goOn` to be flushed. */
  holdCommit(): { written: Promise<void>; goOn(): void } {
    this.#committed = Promise.withResolvers<void>();
    const flushed = Promise.withResolvers<void>();
    this.#flushed = flushed.promise;
    return { written: this.#committed.promise, goOn: flushed.resolve };
  }

  #verb(name: string) {
    const verb = this.#executions.operations.find(({ operation }) => operation.name === name);
    if (!verb) throw new Error(`there is no ${name}`);
    return verb;
  }

  #call(name: string, input: object, more: Partial<KeyCall> = {}) {
    const work = new TestWork();
    const call = {
      work,
      trace: untraced(),
      request_id: "req_1",
      source: "rest",
      ip: null,
      signal: new AbortController().signal,
      audit: { details: {} },
      caller: { key_id: "kid_1", name: "mine", org_id: "org_1" },
      ...more,
    } as unknown as KeyCall;
    const verb = this.#verb(name);
    const target = { room: ROOM, row: ROW, exec_id: (input as { exec_id?: string }).exec_id };
    const transfer = { last_event_id: null } as never;
    const run = async () => verb.run(call, { room_id: "r", sandbox: "a", ...input }, target, transfer);
    return { call, work, verb: run, event: String(verb.operation.audit) };
  }

  /** The pipeline's record of an execution that was started. */
  recordStart(exec_id: string, argv: string[]): Promise<void> {
    return this.#record("exec.started", { exec_id, argv });
  }

  /** The pipeline's record of an execution that a call waited for. */
  recordEnd(exec_id: string, at?: Date): Promise<void> {
    return this.#record("exec.finished", { exec_id, argv: ["true"] }, at);
  }

  /** Of a call that began then, or a minute ago. */
  async #record(event: string, details: Record<string, unknown>, at = new Date(Date.now() - 60_000)): Promise<void> {
    await this.database.commit((queries) =>
      appendAudit(queries, {
        event,
        outcome: "success",
        at: at.toISOString(),
        org_id: "org_1",
        room_uid: ROW.room_uid,
        sandbox_id: ROW.sandbox_id,
        actor: { type: "key", id: "kid_before", name: "before" },
        source: "rest",
        details,
      }),
    );
  }

  /** Executions that were metered. */
  get metered(): number {
    const days = { from: "2000-01-01", to: "2999-12-31" };
    const groups = this.meter.read("org_1" as OrgId, days, "day").values();
    return groups.reduce((sum, { exec_count }) => sum + exec_count, 0);
  }

  get records() {
    const rows = listAudit(this.database.queries, { org_id: "org_1", order: "asc", limit: 10_000 });
    return rows.map((row) => ({ ...row, details: JSON.parse(row.details) as Record<string, unknown> }));
  }

  [Symbol.dispose](): void {
    this.#state.set({ ...ROW, state: "destroyed" });
    this.agent.link.close("the test is over");
    this.#executions.stop();
  }

  #make(): [Completions, ReturnType<typeof makeExecutions>] {
    const deps = {
      database: this.database,
      meter: this.meter,
      traces: NO_TRACES,
      log: makeLog("error", () => {}),
      findRoom: () => ROOM,
      currentRoom: () => ROOM,
      driveMode: () => "open",
      onCommands: () => {},
      limits: { concurrent_creates: 1 },
      saveOutput: async (_room: unknown, path: string) => {
        const done = Promise.withResolvers<void>();
        this.saved.push({ path, done });
        if (this.unsaved) throw this.unsaved;
        await done.promise;
      },
    } as unknown as SandboxDeps;
    const state = this.#state;
    const supervisor = {
      published: state,
      settled: () => null,
      get row() {
        return state.value;
      },
      link: async () => {
        await this.linked;
        return this.agent.link;
      },
    };
    const daemon = this.#daemon;
    const supervisors = {
      get: () => (daemon === this.#daemon ? supervisor : undefined),
      use: async (_: string, work: () => Promise<unknown>) => {
        this.uses++;
        try {
          return await work();
        } finally {
          this.uses--;
        }
      },
    } as unknown as Supervisors;
    const ends = new Completions(deps, () => supervisors);
    return [ends, makeExecutions(deps, supervisors, new Waking(deps, supervisors), ends)];
  }
}
