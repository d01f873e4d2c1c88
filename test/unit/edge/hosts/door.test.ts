/** The HTTP transport as clients and as other hosts reach it: the same routes, and the headers that are trusted from each. */
import { expect, test } from "vitest";
import { type Bound, bind } from "../../../../daemon/core/call/operation.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { forwardRequest } from "../../../../daemon/edge/hosts/forward.ts";
import { type HttpDeps, type HttpServer, makeHttpServer } from "../../../../daemon/edge/http/server.ts";
import { Admission } from "../../../../daemon/edge/pipeline/admission.ts";
import type { PipelineRequest } from "../../../../daemon/edge/pipeline/pipeline.ts";
import { roomGet } from "../../../../shared/api/rooms.ts";
import { newCertificate, scratch } from "../tls-fixture.ts";
import { ABOUT, clientOf, members } from "./fixture.ts";

const FORGED = { "x-roomd-forwarded-for": "127.0.0.1", "x-roomd-hop": "1" };

/** An HTTP transport with a pipeline that records its requests, and answers with the room's name. */
function door(tls: Awaited<ReturnType<typeof newCertificate>> | null): {
  server: HttpServer;
  asked: PipelineRequest[];
} {
  const asked: PipelineRequest[] = [];
  const bound = bind(roomGet, { run: async () => ({ outcome: "found", body: {} }) } as never);
  const pipeline = {
    begin: new Admission(),
    run: async ({ operation }: Bound, request: PipelineRequest) => {
      asked.push(request);
      const done = { outcome: "found", body: { operation: operation.name, ...request.params } };
      return { kind: "done", status: 200, done, location: null, replayed: false, rate: null };
    },
    identify: () => ({ refusal: null, rate: null }),
    failuresWritten: async () => {},
  };
  const deps = {
    operations: [bound],
    road: pipeline,
    ports: { urls: () => ({ base_url: "http://127.0.0.1", domain: null }) },
    mcp: null,
    web: null,
    host: "owner",
    log: makeLog("error", () => {}),
  } as unknown as HttpDeps;
  const url = "http://127.0.0.1:8080";
  return { server: makeHttpServer(deps, { hostname: "127.0.0.1", port: 0, url, tls, trusted_proxies: [] }), asked };
}

test.each([false, true])(
  "members reach the same routes, and their caller headers are trusted (public TLS: %s)",
  async (isEncrypted) => {
    using made = await members("owner", "entry");
    const [owner, member] = made;
    using directory = scratch();
    const { server, asked } = door(isEncrypted ? await newCertificate(directory.path) : null);
    const inside = server.serveMembers(
      { hostname: "127.0.0.1", port: 0 },
      { own: owner.own, members: [member.own.cert] },
    );
    using client = clientOf(member);
    const reached = { host_id: "owner", address: `127.0.0.1:${inside.url.port}`, certificate: owner.own.cert };
    const forward = (path: string, headers = {}, about = ABOUT) =>
      forwardRequest(client, reached, new Request(`http://a${path}`, { headers }), about, new AbortController().signal);

    for (const host of ["rooms.example.org:8080", "a", "ab", "abc", "[::1]:1"]) {
      const answer = await forward("/v1/rooms/build-42?x=1", { host, authorization: "Bearer key" });
      expect([answer.status, await answer.json()]).toEqual([200, { operation: "room_get", room_id: "build-42" }]);
      expect(answer.headers.get("x-roomd-host")).toBe("owner");
      expect(answer.headers.get("x-request-id")).toBe("req-of-test");
      const last = asked.at(-1);
      expect(last).toMatchObject({
        ip: "192.0.2.7",
        hop: 1,
        request_id: "req-of-test",
        authorization: "Bearer key",
      });
      expect(last?.query()).toEqual({ x: "1" });
      expect(last?.isFromHost).toBe(false);
    }
    // A caller that the entry host reports as local to it is not local to this host.
    await forward("/v1/rooms/a", { host: "127.0.0.1" }, { ip: "127.0.0.1", request_id: "r-1", own: "entry" });
    expect(asked.at(-1)).toMatchObject({ ip: "127.0.0.1", hop: 1, isFromHost: false });
    await forward("/v1/rooms/a", {}, { ip: "nonsense", request_id: "r-2", own: "entry" });
    expect(asked.at(-1)?.ip).toBe(null);
    expect((await forward("/v1/nowhere")).status).toBe(404);
    expect((await forward("/v1/docs-that-are-none")).status).toBe(404);

    // From outside the same headers have no effect.
    const outside = await fetch(new URL("/v1/rooms/a", server.url), {
      headers: FORGED,
      tls: { rejectUnauthorized: false },
    });
    expect(outside.status).toBe(200);
    expect(asked.at(-1)).toMatchObject({ ip: "127.0.0.1", isFromHost: true });
    expect(asked.at(-1)?.hop).toBeUndefined();
    await Promise.all([server.stop(0), inside.stop(0)]);
  },
);
