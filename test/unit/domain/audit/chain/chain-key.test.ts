/** The keys of chains: made in one place, and distinguished from other strings by their type. */
import { expect, test } from "vitest";
import { type ChainKey, chainKey, orgOfChain } from "../../../../../daemon/domain/audit/chain/chain-key.ts";

test("an organization's chain has its id, as records of every version have hashed it", () => {
  expect(chainKey("org_1")).toBe("org_1");
  expect(chainKey(null)).toBe("");
});

test("the organization of a chain can be parsed from its key", () => {
  for (const orgId of ["org_1", null]) expect(orgOfChain(chainKey(orgId))).toBe(orgId);
});

test("no other string is accepted as a key", () => {
  // @ts-expect-error: only chainKey makes one.
  const key: ChainKey = "org_1";
  expect(key).toBe(chainKey("org_1"));
});
