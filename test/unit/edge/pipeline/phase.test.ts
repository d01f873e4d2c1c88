/** Remains of a call for each failure: every line of the pipeline's table, with a database in which commits can fail. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StartedWork } from "../../../../daemon/core/call/call-effects.ts";
import { bind, type Caller, type KeyCall, NO_TRANSFER } from "../../../../daemon/core/call/operation.ts";
import { RequestCounts } from "../../../../daemon/core/call/request-counts.ts";
import { NO_TRACES } from "../../../../daemon/core/call/traces.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { listAudit } from "../../../../daemon/domain/audit/index.ts";
import { makeIdempotencyStore } from "../../../../daemon/edge/pipeline/idempotency-step.ts";
import { type Fault, LEAVES, type Left, type Phase } from "../../../../daemon/edge/pipeline/phase.ts";
import { makePipeline, type Pipeline, type PipelineReply } from "../../../../daemon/edge/pipeline/pipeline.ts";
import { standalone } from "../../../../daemon/edge/pipeline/placement.ts";
import { takesIdempotencyKey } from "../../../../shared/api/headers.ts";
import { operations } from "../../../../shared/api/operations.ts";
import { roomCreate } from "../../../../shared/api/rooms.ts";

const NO_LIMIT = { perSecond: 0, burst: 0 };
const NOTED: StartedWork = { room_uid: "rom_1" };
const CALLER = {
  ...{ org_id: "org_1", key_id: "kid_1", name: "mine", plan: "free", scopes: ["rooms:write"] },
  ...{ room_ids: null, agent_id: null, expires_at: null },
} as unknown as Caller;

/** The verb's information about its work. */
interface Told {
  ulid: string | undefined;
  begun: StartedWork | undefined;
}

let connection: Connection;
let database: Database;
/** Number of commits that succeed before the failing one; none fails if negative. */
let good: number;
let cutKey: () => void;
let caller: AbortController;
let logged: string[];
let pipeline: Pipeline;
let told: Told[];
let requests: number;
/** Streams that the verb returns in addition. */
let streams: object;

beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  const real = makeDatabase(connection);
  // Writes exist until the very end, as on a disk that is full at the last block.
  database = {
    ...real,
    commit: (work, vital) =>
      real.commit((queries) => {
        const value = work(queries);
        if (good-- === 0) throw new ServiceError("disk_full");
        return value;
      }, vital),
  };
  [good, told, requests, cutKey, logged, streams] = [-1, [], 0, () => {}, [], {}];
  pipeline = newRoad();
});
afterEach(() => database.close());

/** A daemon's; another is that of the next daemon. */
function newRoad(): Pipeline {
  return makePipeline({
    traces: NO_TRACES,
    answers: makeIdempotencyStore(database),
    authenticate: () => CALLER,
    database,
    log: makeLog("error", (line) => logged.push(line)),
    failedLoginsPerMinute: 0,
    hold: (_, cut) => {
      cutKey = cut;
      return () => {};
    },
    requireSpace: () => {},
    requireProof: () => {},
    auditReads: true,
    rates: { keys: NO_LIMIT, guests: NO_LIMIT },
    requests: new RequestCounts(),
    placement: standalone("host"),
  });
}

type Does = (call: KeyCall) => Promise<object> | object;

/** Makes the call, always the same one; `does` is the work of its verb. */
async function make(does: Does = () => ({}), find = (): unknown => undefined, by = pipeline) {
  const request_id = `req_${++requests}`;
  caller = new AbortController();
  const bound = bind(roomCreate, {
    find: () => find() as undefined,
    run: async (call) => {
      told.push({ ulid: call.work.ulid, begun: call.work.begun });
      return { outcome: "created", body: (await does(call)) as never, ...streams };
    },
  });
  const reply = await by.run(bound, {
    ...{
      source: "rest",
      request_id,
      ip: null,
      authorization: "Bearer key",
      token: null,
      path: "/v1/rooms",
      params: {},
    },
    query: () => ({}),
    body: async () => ({ fields: { room_id: "r" }, sha256: "same" }),
    idempotency_key: "once",
    trace: null,
    transfer: NO_TRANSFER,
    signal: caller.signal,
  });
  return { reply, record: recordOf(request_id) };
}

const recordOf = (requestId: string) =>
  listAudit(database.queries, { org_id: "org_1", order: "asc", limit: 100 })
    .filter(({ request_id }) => request_id === requestId)
    .map(({ outcome }) => outcome);

const phaseOf = (call: KeyCall) => (call.work as unknown as { phase: Phase }).phase.is;
const keep = (call: KeyCall) =>
  database.commit(() => {
    call.work.keep("created", { made: 1 });
    return { made: 1 };
  });
const note = (call: KeyCall) => database.commit(() => call.work.note(NOTED));
const fail = () => {
  throw new ServiceError("guest_unreachable");
};
const refuse = () => {
  throw new ServiceError("room_id_in_use");
};

/** Outcome of the call at which the fault occurs; null: no response was sent. */
interface Seen {
  reply: PipelineReply | null;
  record: string[];
  phase?: Phase["is"];
}

/** A verb that never ends, as if its daemon were killed; returns the record at that time. */
async function cutOff(begin: (call: KeyCall) => Promise<unknown>): Promise<Seen> {
  const started = Promise.withResolvers<Phase["is"]>();
  void make(async (call) => {
    await begin(call);
    started.resolve(phaseOf(call));
    return await new Promise<never>(() => {});
  });
  const phase = await started.promise;
  const record = recordOf(`req_${requests}`);
  pipeline = newRoad();
  return { reply: null, record, phase };
}

const FAULTS: Record<Fault, () => Promise<Seen>> = {
  "it is refused before its verb": () => make(undefined, () => refuse()),
  "its claim cannot be written": () => {
    good = 0;
    return make();
  },
  "the same call is under way": async () => {
    const working = Promise.withResolvers<void>();
    void make(() => {
      working.resolve();
      return new Promise<never>(() => {});
    });
    await working.promise;
    return await make();
  },
  "it was answered before": async () => {
    await make();
    return await make();
  },
  "the verb refuses it": () => watched(refuse),
  "the refusal cannot be written": () =>
    watched(async (call) => {
      await note(call);
      good = 0;
      return refuse();
    }),
  "the verb fails": () =>
    watched(async (call) => {
      await note(call);
      return fail();
    }),
  "the verb's commit fails": () =>
    watched(async (call) => {
      await note(call);
      good = 0;
      return await keep(call);
    }),
  "the work is done and cannot be recorded": () =>
    watched(async (call) => {
      await note(call);
      call.work.effect = { started: true };
      good = 0;
      return {};
    }),
  "its client has left, and the verb gives up": async () => {
    const seen = await watched(async (call) => {
      await note(call);
      caller.abort();
      return refuse();
    });
    return { ...seen, reply: null };
  },
  "the key ends while the verb works": () =>
    watched(async () => {
      cutKey();
      return await new Promise<never>(() => {});
    }),
  "the caller leaves while the verb works": () =>
    watched(async (call) => {
      await note(call);
      caller.abort();
      call.signal.throwIfAborted();
      return {};
    }),
  "the daemon ends while the verb works": () => cutOff(note),
  "the verb fails after its own commit": () =>
    watched(async (call) => {
      await keep(call);
      watchedPhase = phaseOf(call);
      return fail();
    }),
  "the daemon ends after the verb's own commit": () => cutOff(keep),
};

let watchedPhase: Phase["is"];
/** A call that reaches its verb, with the phase that it is in when the verb is over. */
async function watched(does: Does): Promise<Seen> {
  const seen = await make(async (call) => {
    watchedPhase = phaseOf(call);
    try {
      return await does(call);
    } finally {
      watchedPhase = phaseOf(call);
    }
  });
  return { ...seen, phase: watchedPhase };
}

describe("a call with an Idempotency-Key", () => {
  test.each(Object.entries(LEAVES) as [Fault, Left][])("when %s", async (fault, left) => {
    const { reply, record, phase } = await FAULTS[fault]();
    const answered = reply === null ? "nothing" : reply.kind === "done" ? "answer" : "refusal";
    expect({ answer: answered, record }).toEqual({ answer: left.answer, record: left.record });
    // Before its verb starts, its phase cannot be observed.
    expect(phase ?? "arrived").toBe(left.in);

    const before = told.length;
    const [first] = told;
    const again = await make();
    const [second] = told.slice(before);
    if (left.again === "carried out") {
      expect(again.reply).toMatchObject({ kind: "done", status: 201, replayed: false });
      expect(second?.begun).toBeUndefined();
    } else if (left.again === "the same work, continued") {
      expect(again.reply).toMatchObject({ kind: "done", status: 201, replayed: false });
      expect(second).toEqual({ ulid: first?.ulid, begun: NOTED });
    } else if (left.again === "the same answer") {
      expect(second).toBeUndefined();
      const status = left.in === "kept" ? 201 : reply?.status;
      expect(again.reply).toMatchObject({ status, replayed: true });
    } else {
      expect(second).toBeUndefined();
      expect(again.reply).toMatchObject({ kind: "problem", problem: { code: "idempotency_in_progress" } });
    }
    // Whatever it was, the answer that is given in the end stays.
    if (left.again !== "refused")
      expect((await make()).reply).toMatchObject({ status: again.reply.status, replayed: true });
  });

  test("whose effect cannot be recorded reports that there is one", async () => {
    const { reply } = await FAULTS["the work is done and cannot be recorded"]();
    expect(reply).toMatchObject({ status: 507, problem: { code: "disk_full", details: { started: true } } });
  });

  test("which cannot be recorded releases its streams", async () => {
    const over: string[] = [];
    streams = {
      stream: { type: "text/plain", bytes: new ReadableStream({ cancel: () => void over.push("stream") }) },
      events: { events: (async function* () {})(), cancel: () => over.push("events") },
    };
    const { reply } = await FAULTS["the work is done and cannot be recorded"]();
    expect([reply?.kind, over.sort()]).toEqual(["problem", ["events", "stream"]]);
  });

  test("whose caller disconnects is no bug, but any other failure is one", async () => {
    const { reply } = await FAULTS["the caller leaves while the verb works"]();
    expect(reply).toMatchObject({ status: 499, problem: { code: "caller_left" } });
    expect(logged).toEqual([]);
    const failed = await make(() => {
      caller.abort();
      throw new TypeError("a bug");
    });
    expect(failed.reply).toMatchObject({ status: 500, problem: { code: "internal" } });
    expect(logged).toHaveLength(1);
  });

  test("that outlasts its key is recorded with its outcome, and its response is not sent", async () => {
    const done = Promise.withResolvers<void>();
    const { reply } = await make(async (call) => {
      cutKey();
      await new Promise((resolve) => setTimeout(resolve, 1));
      await keep(call).then(() => done.resolve(), done.reject);
      return {};
    });
    await done.promise;
    expect(reply.status).toBe(401);
    expect(recordOf("req_1")).toEqual(["denied", "success"]);
  });
});

/**
 * How a retry of each operation with an Idempotency-Key avoids doing the work twice if its response could not be stored: a new operation
 * fails here until it is listed. test/api/storage/idempotency-crash.test.ts verifies the entries.
 */
const ONCE: Record<string, readonly string[]> = {
  "its answer is in the commit of its work": [
    ...["org_create", "key_create", "key_rotate", "room_create", "ssh_access_create", "ssh_key_add"],
    "template_create",
    ...["webhook_create", "webhook_rotate"],
    ...["invitation_create", "grant_create", "passkey_add", "billing_key"],
    ...["agent_send", "message_send_many", "message_reply"],
  ],
  "what it begins is noted": [
    ...["sandbox_create", "room_fork", "fs_write", "fs_move", "sandbox_file_move", "barrier_arrive", "computer"],
  ],
  "what it begins is named": [
    "sandbox_snapshot",
    "room_checkpoint",
    "sandbox_fork",
    "sandbox_exec",
    "execution_start",
    "terminal_create",
  ],
  "it is refused the second time": ["execution_stdin", "execution_signal", "device_decide", "recording_start"],
  "twice is as good as once": [
    ...[
      "sandbox_standby",
      "sandbox_hibernate",
      "sandbox_rollback",
      "room_restore",
      "room_move",
      "host_evacuate",
      "sandbox_resume",
      "sandbox_expose_port",
      "terminal_token",
      "screen_ticket",
      "recording_stop",
      "fs_mkdir",
      "sandbox_file_mkdir",
      "message_ack",
    ],
    ...["webhook_redeliver", "webhook_test"],
    ...["passkey_options", "identity_begin", "billing_checkout", "billing_portal"],
  ],
};

test("every operation with an Idempotency-Key declares how its work is done once", () => {
  const taking = Object.values(operations).filter(takesIdempotencyKey);
  expect(Object.values(ONCE).flat().sort()).toEqual(taking.map(({ name }) => name).sort());
});
