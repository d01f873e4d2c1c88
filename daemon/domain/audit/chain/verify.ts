/** Verification of hash chains: the calls for an organization's own chain, and the operator's check of all chains. */
import { auditVerify, orgAuditVerify } from "../../../../shared/api/audit.ts";
import type { AnchorStore } from "../../../core/anchor-store.ts";
import { type Bound, bind, boundTo, type Caller, parsed } from "../../../core/call/operation.ts";
import { ownerOf } from "../../../core/loop/index.ts";
import { inPieces } from "../../../core/loop/steps.ts";
import { type Queries, stepsAtOneMoment } from "../../../db/client.ts";
import { withAnchors } from "../anchors/anchored.ts";
import { VerifiedDays } from "../days/verified.ts";
import type { AuditDeps } from "../deps.ts";
import { type AuditedRoom, findRoom } from "../find.ts";
import { readVerdict } from "../reading/reads.ts";
import { type ChainKey, chainKey } from "./chain-key.ts";
import { checkChain } from "./check.ts";
import { type Contradiction, compareNamed } from "./compare-named.ts";
import type { ChainFacts, Verdict, Walked } from "./hash-chain.ts";
import { walkOf } from "./time-slices.ts";

/** A verdict, and warnings for checks that could not be made. */
export type Looked = Verdict & { warnings?: string[] };
/** A host's part for a host that gathers: with named records that other hosts lack. */
export type VerdictPart = Looked & { contradicts?: Contradiction[] };

export function makeVerify(deps: AuditDeps): Bound[] {
  /** Single-flight per organization: a concurrent caller gets the result of the check in progress. */
  const underWay = new Map<string, Promise<VerdictPart>>();
  const { anchors, others } = deps;
  const { queries } = deps.database;
  const together = async (name: string, check: () => Promise<VerdictPart>): Promise<VerdictPart> => {
    const verdict = underWay.get(name) ?? check().finally(() => underWay.delete(name));
    underWay.set(name, verdict);
    return await verdict;
  };
  const days = new VerifiedDays(queries);
  const check = async (org_id: string, room_uid: string | null, walked: Walked | null) => {
    // Several callers may share this check: it does not end when one of them leaves.
    const by = { owner: ownerOf(org_id), signal: new AbortController().signal };
    return parsed(await deps.reads.read(readVerdict, { org_id, room_uid, walked }, by));
  };
  const verify = (orgId: string) =>
    together(orgId, async () => {
      const key = chainKey(orgId);
      const files = await days.filesOf(key);
      const walked = days.verified(key, files);
      const { verdict, closed, named } = await check(orgId, null, walked);
      const result = await anchored(queries, key, anchors, verdict, walked?.last.seq);
      if (result.ok && !result.warnings && closed) days.note(key, closed, files);
      return others ? withNamed(result, await compareNamed(others, orgId, named)) : result;
    });
  const verifyOwn = ({ org_id }: Caller, { room_uid }: AuditedRoom) =>
    together(`${org_id} ${room_uid}`, async () => (await check(org_id, room_uid, null)).verdict);
  return [
    bind(orgAuditVerify, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      run: async (_call, _input, orgId) => ({ outcome: "ok", body: await verify(orgId) }),
    }),
    bind(auditVerify, {
      find: (call, params) => findRoom(deps, call, params),
      run: async ({ caller }, _input, room) => ({
        outcome: "ok",
        body: verdictOf(await (boundTo(caller) ? verifyOwn(caller, room) : verify(caller.org_id))),
      }),
    }),
  ];
}

const verdictOf = ({ ok, from_seq, to_seq, broken_at }: Verdict): Verdict => ({ ok, from_seq, to_seq, broken_at });

function withNamed(looked: Looked, { contradicts, warnings }: Awaited<ReturnType<typeof compareNamed>>): VerdictPart {
  const all = [...(looked.warnings ?? []), ...warnings];
  return {
    ...looked,
    ...(contradicts.length > 0 ? { contradicts } : {}),
    ...(all.length > 0 ? { warnings: all } : {}),
  };
}

const NOT_COMPARED =
  "The anchors of the audit could not be read, so records that were cut off at its end are not detected.";

/** Checks a chain on this event loop, and compares it with its anchors if they can be read. */
export async function verifyAnchored(
  queries: Queries,
  orgKey: ChainKey,
  anchors: AnchorStore | null,
  witnessed?: ChainFacts["witnessed"],
): Promise<Looked> {
  return await anchored(queries, orgKey, anchors, await verifyAudit(queries, orgKey, witnessed));
}

async function anchored(
  queries: Queries,
  orgKey: ChainKey,
  anchors: AnchorStore | null,
  verdict: Verdict,
  /** Last record that an earlier check has compared with the anchors. */
  compared = 0,
): Promise<Looked> {
  if (!anchors) return verdict;
  try {
    return await withAnchors(queries, anchors, orgKey, verdict, compared);
  } catch {
    return { ...verdict, warnings: [NOT_COMPARED] };
  }
}

/** Checks a chain on this event loop, in pieces. */
export async function verifyAudit(
  queries: Queries,
  orgKey: ChainKey,
  witnessed?: ChainFacts["witnessed"],
): Promise<Verdict> {
  const steps = checkChain(queries, orgKey, witnessed ? { witnessed } : {});
  return (await inPieces(stepsAtOneMoment(queries, steps), walkOf(orgKey))).verdict;
}
