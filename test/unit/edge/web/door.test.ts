/** A page that cannot be rendered, after the session's secret was replaced: the browser receives the new secret nevertheless. */
import { expect, test } from "vitest";
import type { PageRequest } from "../../../../daemon/edge/page-request.ts";
import { makeWebDoor, type WebDeps } from "../../../../daemon/edge/web/door.ts";
import type { Operation } from "../../../../shared/api/contract.ts";
import { accountGet, accountUpdate } from "../../../../shared/api/people/account.ts";
import { usage } from "../../../../shared/api/usage.ts";

const ORIGIN = "http://localhost:8080";
const PROBLEM = {
  status: 422,
  title: "Invalid",
  detail: "Invalid.",
  code: "validation_failed",
  errors: [],
  hint: null,
};
const BODIES: Record<string, object> = {
  [accountGet.name]: { user_id: "usr_1", name: "Ada", email: "a@b.example", org_id: "org_1", organizations: [] },
  // The profile shows credits, which are absent.
  [usage.name]: { plan: "free", sandboxes: { active: 0 }, totals: { sandbox_seconds: 0 } },
};

test("an error page has the cookies of the page that it replaces", async () => {
  const logged: string[] = [];
  const deps = {
    operations: [accountGet, accountUpdate, usage].map((operation) => ({ operation })),
    road: {
      begin: { unknownGoesOn: () => {} },
      run: async ({ operation: { name } }: { operation: Operation }) =>
        BODIES[name]
          ? { kind: "done", done: { outcome: "ok", body: BODIES[name] }, replayed: false }
          : { kind: "problem", problem: PROBLEM },
    },
    users: {
      recognise: () => ({ key_id: "usr_1", org_id: "org_1", session: { session_id: "ses_1" } }),
      signIn: { prove: async () => "new-secret" },
      addresses: { isOn: false },
      passkeys: { place: null },
    },
    ...{ oauth: {}, clients: {}, letters: {}, billing: { isOn: false } },
    url: () => ORIGIN,
    hasHosts: () => false,
    log: { error: (text: string) => logged.push(text) },
  };
  const form = new URLSearchParams({ do: "name", name: "", proof: "the password" });
  const response = await makeWebDoor(deps as unknown as WebDeps).answer({
    ...{ method: "POST", url: new URL("/account", ORIGIN), ip: null, request_id: "req_1", ask: null },
    headers: new Headers({
      ...{ origin: ORIGIN, "sec-fetch-site": "same-origin", cookie: "roomd=old-secret" },
      "content-type": "application/x-www-form-urlencoded",
    }),
    signal: new AbortController().signal,
    body: async () => new TextEncoder().encode(form.toString()),
  } satisfies PageRequest);
  expect([response.status, logged]).toEqual([500, ["request failed"]]);
  expect(response.headers.getSetCookie()).toEqual([expect.stringMatching(/^roomd=new-secret;/)]);
  expect(await response.text()).toContain('role="alert"');
});
