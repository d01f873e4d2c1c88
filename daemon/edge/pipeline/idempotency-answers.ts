/**
 * Idempotency-Key: the first call with a key is carried out and its response stored for 24 hours; a retry gets that response. The scope is
 * API key, method and path.
 *
 *     held ──answered──▶ stored, replayed
 *       └──5xx, not recorded, a crash──▶ released: a retry is carried out as the same work
 *
 * Calls in progress are known in memory alone: a row without a response that is not held is free, whatever ended its work, and however
 * little could be written then.
 *
 * The work of a call has a ULID that derives from the call and from the time when its key was first used. Work that a verb starts elsewhere
 * by that name, such as a guest's command, is not started twice even if the daemon ends between the start and the response. Work in the
 * database either stores its response in its own commit, or notes there the work that it has started, and is resumed by that.
 *
 * A large response is stored compressed. Their total size is limited (idempotency-removal.ts): of a removed response it is still known that the
 * call was carried out, and with which status: a retry gets 410 history_gone, never a second effect.
 *
 * Leftovers of a call that fails half way are in phase.ts.
 */
import { IDEMPOTENCY_SECONDS } from "../../../shared/api/headers.ts";
import type { StartedWork } from "../../core/call/call-effects.ts";
import { at, now, wallMs } from "../../core/clock.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { TransactionMap } from "../../db/transaction-map.ts";
import { type CallsBranch, makeBranch } from "./idempotency-branch.ts";
import { IdempotencyStorageLimit } from "./idempotency-removal.ts";
import { type IdempotentCall, idempotency, KEY, sameCall, workUlid } from "./idempotency-table.ts";
import type { Claimed } from "./phase.ts";

const KEPT_MS = IDEMPOTENCY_SECONDS * 1000;
/** Smaller answers are stored uncompressed. */
const LARGE_BYTES = 64 * 1024;
/** Maximum compressed bytes of one key's large answers; the largest answer of an exec fits twice. */
export const MAX_REPLY_BYTES = 64 * 1024 ** 2;
/** The limit for all responses of an organization, as a multiple of that. */
export const ORG_SHARES = 4;

export type { IdempotentCall };

export interface StoredReply {
  status: number;
  body: unknown;
  location: string | null;
}

/** A reply in its stored form. */
export interface PackedReply {
  status: number;
  reply: string | null;
  reply_zstd: Buffer | null;
  reply_bytes: number;
  kept_bytes: number;
}

/** The stored answer, or the identifier of the work to be done. */
export type Claim = { reply: StoredReply } | ({ reply: null; work_ulid: string; begun: StartedWork | null } & Claimed);

export interface Idempotency {
  /** Claims the key, or returns the stored answer. Throws idempotency_key_reused, idempotency_in_progress, history_gone. */
  begin(call: IdempotentCall): Promise<Claim>;
  /** Prepares an answer for storage; a large one is compressed on another thread. */
  pack(reply: StoredReply): Promise<PackedReply>;
  /** Within a transaction: records the work that the call has started, for a retry before there is a response. */
  note(queries: Queries, call: IdempotentCall, started: StartedWork): void;
  /** Within a transaction: stores the answer. */
  keep(queries: Queries, call: IdempotentCall, reply: PackedReply): void;
  branch: CallsBranch;
}

export function makeIdempotency(
  database: Database,
  maxReplyBytes = MAX_REPLY_BYTES,
  maxOrgBytes = ORG_SHARES * maxReplyBytes,
): Idempotency {
  const space = new IdempotencyStorageLimit(database, { largeOfKey: maxReplyBytes, ofOrg: maxOrgBytes });
  /** Calls that are under way. */
  const held = new TransactionMap<string, true>(database);
  const claimOf = (
    queries: Queries,
    call: IdempotentCall,
  ): Exclude<Claim, { reply: StoredReply }> | { kept: IdempotencyRow } => {
    space.dropOld(call, at(wallMs() - KEPT_MS));
    const known = queries.select().from(idempotency).where(sameCall(call)).get();
    const isSame = known?.body_sha256 === call.body_sha256;
    const name = JSON.stringify([call.key_id, call.method, call.path, call.idempotency_key]);
    // Earlier versions wrote 0 if there was no response.
    if (known?.status) {
      if (!isSame) throw new ServiceError("idempotency_key_reused");
      return { kept: known };
    }
    if (held.get(name)) throw new ServiceError(isSame ? "idempotency_in_progress" : "idempotency_key_reused");
    held.set(name, true);
    const letGo = () => held.delete(name);
    // A released call may be repeated with corrected input, and is other work then.
    const created_at = known && isSame ? known.created_at : now();
    const begun = isSame ? known.begun : null;
    const work_ulid = isSame ? known.work_ulid : null;
    const claimed = { ...call, status: null, reply: null, created_at, begun, work_ulid };
    queries
      .insert(idempotency)
      .values(claimed)
      .onConflictDoUpdate({ target: Object.values(KEY), set: claimed })
      .run();
    return { reply: null, work_ulid: work_ulid ?? workUlid(call, created_at), begun, call, letGo };
  };
  return {
    begin: async (call) => {
      const claim = await database.commit((queries) => claimOf(queries, call), true, ownerOf(call.org_id));
      return "kept" in claim ? { reply: await unpack(claim.kept) } : claim;
    },

    pack: async (reply) => {
      const packed = packSmall(reply);
      if (packed.reply.length < LARGE_BYTES) return packed;
      const reply_zstd = await Bun.zstdCompress(packed.reply);
      const bytes = reply_zstd.byteLength;
      return { ...packed, reply: null, reply_zstd, reply_bytes: bytes, kept_bytes: bytes };
    },

    note: (queries, call, started) => {
      queries.update(idempotency).set({ begun: started }).where(sameCall(call)).run();
    },

    branch: makeBranch(database, space),

    keep: (queries, call, reply) => {
      space.keep(call, reply, () => queries.update(idempotency).set(reply).where(sameCall(call)).run());
    },
  };
}

type IdempotencyRow = typeof idempotency.$inferSelect;

/** Packs an answer that is known to be small. */
export function packSmall(reply: StoredReply) {
  const json = JSON.stringify(reply);
  return { status: reply.status, reply: json, reply_zstd: null, reply_bytes: 0, kept_bytes: Buffer.byteLength(json) };
}

/** A large answer is decompressed on another thread. Throws history_gone. */
async function unpack({ status, reply, reply_zstd, created_at }: IdempotencyRow): Promise<StoredReply> {
  if (reply !== null) return JSON.parse(reply) as StoredReply;
  if (reply_zstd !== null) return JSON.parse((await Bun.zstdDecompress(reply_zstd)).toString()) as StoredReply;
  throw new ServiceError("history_gone", {
    detail: `The call with this Idempotency-Key was executed, with status ${status}. Its answer is no longer kept.`,
    details: { status, created_at },
    hint: "It is not executed again. Use a new Idempotency-Key for a new call.",
  });
}
