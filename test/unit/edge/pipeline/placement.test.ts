/** Placement of calls: of a service of one host, and of several, with a directory that knows one other host. */
import { expect, test } from "vitest";
import type { Host } from "../../../../daemon/cluster/directory.ts";
import { Elsewhere } from "../../../../daemon/cluster/elsewhere.ts";
import type { Caller } from "../../../../daemon/core/call/operation.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { ClusterPlacement, type ClusterPlacementDeps } from "../../../../daemon/edge/hosts/placement.ts";
import { standalone } from "../../../../daemon/edge/pipeline/placement.ts";
import type { Outcome, RequestContext } from "../../../../daemon/edge/pipeline/request-context.ts";
import type { Operation } from "../../../../shared/api/contract.ts";
import { hostEvacuate } from "../../../../shared/api/hosts.ts";
import { roomCreate, roomGet, roomUpdate } from "../../../../shared/api/rooms.ts";

const OTHER = { host_id: "other", url: "http://other", state: "active" } as Host;
const CALLER = { org_id: "org_1", key_id: "kid_1", room_ids: null } as Caller;
const REPLY = { kind: "done", status: 200 } as Outcome;
const MISSING = new ServiceError("room_not_found");

/** A call, and its effects on the host that it arrived at. */
function arrived(operation: Operation, known: Partial<Record<"phase" | "caller" | "reply" | "forward", unknown>> = {}) {
  const [forwardedTo, released] = [[] as string[], [] as string[]];
  const forward = async ({ host_id }: Host) => {
    forwardedTo.push(host_id);
    return known.reply ?? REPLY;
  };
  const walk = {
    ...{ operation, claim: null, phase: { is: known.phase ?? "arrived" } },
    call: { caller: known.caller ?? CALLER },
    request: { params: { room_id: "r" }, token: null, forward: "forward" in known ? known.forward : forward },
    release: () => void released.push("call"),
  } as unknown as RequestContext;
  return { walk, forwardedTo, released };
}

/** The host `own` of two. */
function placementOf(cluster: Partial<ClusterPlacementDeps["cluster"]> = {}, isComing = false) {
  const inFlight = { count: 0 };
  const calls = {
    enter: () => {
      inFlight.count++;
      return { coming: async () => {}, leave: () => void inFlight.count-- };
    },
  };
  const deps = {
    ...{ own: "own", staleAfterSeconds: 0, gather: { of: () => null }, isComing: () => isComing, calls },
    cluster: {
      ...{ isMember: () => true, hasFollowed: () => true, choose: () => null },
      ...{ host: () => OTHER, elsewhere: async () => OTHER, ...cluster },
    },
  } as unknown as ClusterPlacementDeps;
  return { placement: new ClusterPlacement(deps), inFlight };
}

const codeOf = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return error instanceof Elsewhere ? error.host.host_id : (error as ServiceError).code;
  }
  return null;
};

test("a standalone host takes rooms for itself alone", () => {
  const placed = standalone("own").begin(arrived(roomCreate).walk);
  const made = (input: object) => codeOf(() => placed.requireHere(roomCreate, CALLER, { room_id: "r", ...input }));
  expect(made({})).toBeNull();
  expect(made({ host: "own" })).toBeNull();
  expect(made({ host: "other" })).toBe("validation_failed");
  expect(made({ host_labels: { zone: "a" } })).toBe("validation_failed");
  expect(codeOf(() => placed.requireHere(hostEvacuate, CALLER, { host: "other" }))).toBeNull();
});

test("a call about a room of another host is forwarded, and holds nothing here", async () => {
  const { placement, inFlight } = placementOf();
  const { walk, forwardedTo, released } = arrived(roomGet);
  const placed = placement.begin(walk);
  placed.enter(CALLER);
  expect(inFlight.count).toBe(1);
  expect(await placed.forward(MISSING)).toBe(REPLY);
  expect([forwardedTo, released, inFlight.count]).toEqual([["other"], ["call"], 0]);
  placed.leave();
  expect(inFlight.count).toBe(0);
});

test.each<[string, Parameters<typeof arrived>[1], string, boolean]>([
  ["whose verb has started", { phase: "working" }, "misdirected", false],
  ["that another host has forwarded", { forward: undefined }, "misdirected", false],
  ["of a key that is bound to other rooms", { caller: { ...CALLER, room_ids: ["s"] } }, "room_not_found", false],
  ["whose room the other host has just handed on", { reply: { ...REPLY, status: 421 } }, "room_moving", true],
])("a call %s fails", async (_, known, code, isForwarded) => {
  const { walk, forwardedTo, released } = arrived(roomUpdate, known);
  const { failure } = (await placementOf().placement.begin(walk).forward(MISSING)) as { failure: ServiceError };
  expect(failure.code).toBe(code);
  expect([forwardedTo.length, released.length]).toEqual(isForwarded ? [1, 1] : [0, 0]);
});

test("a room that is arriving is moving", async () => {
  const { placement } = placementOf({ elsewhere: async () => null }, true);
  expect(await placement.begin(arrived(roomGet).walk).forward(MISSING)).toMatchObject({
    failure: { code: "room_moving" },
  });
});

test("a started verb is carried out elsewhere if it was before", async () => {
  const { walk, forwardedTo } = arrived(roomCreate, { phase: "working" });
  expect(await placementOf().placement.begin(walk).forward(new Elsewhere(OTHER))).toBe(REPLY);
  expect(forwardedTo).toEqual(["other"]);
});

test("only a member that follows the directory changes rooms", () => {
  const enter = (operation: Operation, cluster: Partial<ClusterPlacementDeps["cluster"]>) =>
    codeOf(() => {
      const placed = placementOf(cluster).placement.begin(arrived(operation).walk);
      placed.enter(CALLER);
      placed.read(() => null);
    });
  expect(enter(roomUpdate, { isMember: () => false })).toBe("not_a_member");
  expect(enter(roomGet, { isMember: () => false })).toBeNull();
  expect(enter(roomUpdate, { hasFollowed: () => false })).toBe("cluster_unavailable");
  expect(enter(roomGet, { hasFollowed: () => false })).toBeNull();
});

test("a room is made on the host that is chosen for it, a host evacuates itself", () => {
  const choose = () => OTHER;
  const goes = (operation: Operation, input: Record<string, unknown>) =>
    codeOf(() =>
      placementOf({ choose }).placement.begin(arrived(operation).walk).requireHere(operation, CALLER, input),
    );
  expect(goes(roomCreate, { room_id: "r" })).toBe("other");
  expect(goes(hostEvacuate, { host: "other" })).toBe("other");
  expect(goes(hostEvacuate, { host: "own" })).toBeNull();
  expect(goes(roomGet, {})).toBeNull();
});
