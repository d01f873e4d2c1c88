/** Requests of other hosts to compare heads of an audit chain. */
import { expect, test } from "vitest";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Head, MAX_NAMED } from "../../../../daemon/domain/audit/index.ts";
import { answerPeer, type HostCalls } from "../../../../daemon/edge/hosts/room-transfer.ts";

async function ask(body: object, signal = new AbortController().signal) {
  const asked: { heads: readonly Head[]; over: AbortSignal }[] = [];
  const lostHeads: HostCalls["lostHeads"] = async (_, heads, over) => {
    asked.push({ heads, over });
    return [];
  };
  const request = new Request("https://host/hosts/audit", { method: "POST", body: JSON.stringify(body), signal });
  const response = await answerPeer(
    { lostHeads } as HostCalls,
    makeLog("error", () => {}),
    request,
    new URL(request.url),
  );
  return { status: response?.status, asked };
}

const heads = (count: number) => Array.from({ length: count }, (_, seq) => ({ seq, hash: "0".repeat(64) }));

test("as many heads as a host may name are compared, until it no longer waits", async () => {
  const left = new AbortController();
  const { status, asked } = await ask({ org_id: "org_1", heads: heads(MAX_NAMED) }, left.signal);
  expect([status, asked[0]?.heads.length]).toEqual([200, MAX_NAMED]);
  left.abort();
  expect(asked[0]?.over.aborted).toBe(true);
});

test.each([
  ["more heads", { org_id: "org_1", heads: heads(MAX_NAMED + 1) }],
  ["a long organization", { org_id: "o".repeat(65), heads: heads(1) }],
  ["a long hash", { org_id: "org_1", heads: [{ seq: 1, hash: "0".repeat(65) }] }],
])("%s are refused", async (_, body) => {
  expect(await ask(body)).toEqual({ status: 400, asked: [] });
});
