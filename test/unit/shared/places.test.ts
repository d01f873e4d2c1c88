/** The page of each kind of resource. */
import { expect, test } from "vitest";
import { PLACE_TYPES, type Placed, pathOf, pathOfSure } from "../../../shared/places.ts";

const WHERE = { room_id: "build-42", agent_id: "worker" };

test.each<[Placed["type"], string, string]>([
  ["room", "build-42", "/rooms/build-42"],
  ["sandbox", "sbx_1", "/rooms/build-42/agents/worker"],
  ["agent", "worker", "/rooms/build-42/agents/worker"],
  ["execution", "exe_1", "/rooms/build-42/agents/worker/commands?exec=exe_1"],
  ["message", "msg_1", "/rooms/build-42/messages?message=msg_1"],
  ["barrier", "merged", "/rooms/build-42/waits?barrier=merged"],
  ["terminal", "ter_1", "/rooms/build-42/agents/worker/terminal?terminal=ter_1"],
  ["port", "web-abc", "/rooms/build-42/ports?label=web-abc"],
  ["audit", "evt_1", "/audit?audit_id=evt_1"],
  ["request", "req_1", "/audit?request_id=req_1"],
  ["key", "kid_1", "/account/keys"],
  ["org", "org_1", "/account"],
  ["template", "default", "/prompts"],
])("of a %s %s is %s", (type, id, path) => {
  expect(pathOf({ type, id, ...WHERE })).toBe(path);
});

test("of every kind stays a path of the web, for any name", () => {
  const odd = "../..//evil.example/?x=1&y#z\r\n";
  for (const type of PLACE_TYPES) {
    const { origin, pathname, hash, search } = new URL(
      pathOf({ type, id: odd, room_id: odd, agent_id: odd }),
      "https://ours.example",
    );
    expect(origin).toBe("https://ours.example");
    expect(hash).toBe("");
    expect(pathname).toMatch(/^\/(rooms\/[^/]+|audit$|account|org\/members$|usage$|prompts$|webhooks$)/);
    // The event filter of an address is no name.
    const { event: _, ...named } = Object.fromEntries(new URLSearchParams(search));
    for (const value of Object.values(named)) expect(value).toBe(odd);
    expect(pathOf({ type, id: odd, room_id: null, agent_id: null })).toMatch(
      /^\/(rooms|audit|account|org\/members|usage|prompts|webhooks)/,
    );
  }
});

test("is derived from the id alone if that suffices, and otherwise not", () => {
  expect(["evt_1", "req_1", "kid_1", "org_1"].map(pathOfSure)).toEqual([
    ...["/audit?audit_id=evt_1", "/audit?request_id=req_1", "/account/keys", "/account"],
  ]);
  expect(["build-42", "sbx_1", "evt", "a/b", ""].map(pathOfSure)).toEqual([null, null, null, null, null]);
});
