/** Exposed ports, to servers in a real guest. */
import { beforeAll, expect, test } from "vitest";
import type { Json } from "../harness/daemon.ts";
import { until, withGuests } from "../harness/guests.ts";

withGuests("ports", {}, (guests) => {
  const PORTS = "/v1/rooms/p/sandboxes/a/ports";

  beforeAll(async () => {
    await guests.daemon.room("p");
    await guests.daemon.sandbox("p", "a", guests.cid());
  });

  test("a server in the guest is reached once it listens, and no more once its port is not exposed", async () => {
    const { daemon } = guests;
    const made: Json = await daemon.ok("POST", PORTS, { port: 8000 });
    const get = (path: string, headers = {}) => fetch(made.path_url + path, { headers, redirect: "manual" });
    expect((await get("")).status).toBe(401);
    expect((await get("", { "x-port-token": made.token })).status).toBe(502);
    await daemon.sh("p", "a", "cd /etc && (setsid python3 -m http.server 8000 >/dev/null 2>&1 &)");
    await until("it listens", async () => (await daemon.ok("GET", PORTS)).items[0].listening);
    const answer = await get("hostname", { "x-port-token": made.token });
    expect([answer.status, await answer.text()]).toEqual([200, "a\n"]);
    await daemon.ok("DELETE", `${PORTS}/8000`);
    expect((await get("hostname", { "x-port-token": made.token })).status).toBe(404);
  });
});
