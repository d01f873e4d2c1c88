/** Pages of applications: authorizing one, by its request or by its code, and the list of authorized ones. */

import type { ComponentChildren } from "preact";
import { READ_SCOPES, type Scope } from "../../../../shared/api/contract.ts";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { GrantRecord } from "../../../../shared/api/grants.ts";
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { Moment } from "../../../web/components/static.tsx";
import { ACTIONS, Table } from "../../../web/components/table.tsx";
import { Confirmed, CopyOf, Field, Post, Select, Submit } from "../components/forms.tsx";
import type { FormReport, Page } from "../layout.tsx";
import { ROUTES } from "../routes.ts";
import { whoOf } from "./account.tsx";

/** The user's choices to narrow a request. */
export const GIVES: readonly (readonly [string, string])[] = [
  ["all", "Everything requested"],
  ["read", "Read only"],
];
export const LASTS: readonly (readonly [string, string])[] = [
  ["", "Until I revoke it"],
  ["3600", "For an hour"],
  ["86400", "For a day"],
  ["2592000", "For 30 days"],
];

/** Descriptions of scopes. Scopes that act on the outside or run programs are marked. */
const SAID: Record<Scope, string> = {
  "rooms:read": "see rooms",
  "rooms:write": "create and destroy rooms",
  "sandboxes:read": "see sandboxes",
  "sandboxes:write": "create and destroy sandboxes",
  exec: "run commands in sandboxes",
  "ports:write": "expose ports to the network",
  "drive:read": "read drives",
  "drive:write": "write to drives",
  "fabric:read": "read messages between agents",
  "fabric:write": "send messages between agents",
  terminal: "open terminals",
  "templates:write": "build and remove templates",
  "audit:read": "read the audit",
  "usage:read": "read usage",
  "keys:write": "create and revoke API keys",
  "org:admin": "administer the organization",
};

/** Scopes that the user should notice first. */
const STRONG: readonly Scope[] = ["exec", "ports:write", "terminal", "keys:write", "org:admin"];

export interface Consent {
  /** The application's own name: any application may use any name. */
  name: string;
  scopes: readonly Scope[];
  /** The redirect's destination, or the origin of the request. */
  place: ComponentChildren;
  /** The form's target, and its hidden fields. */
  action: string;
  along: Readonly<Record<string, string>>;
  problem?: Problem | null;
}

export function consentPage(account: AccountRecord, consent: Consent): Page {
  const { name, scopes, place, action, along, problem = null } = consent;
  const isWriting = scopes.some((scope) => !(READ_SCOPES as readonly string[]).includes(scope));
  const sorted = scopes.toSorted((one, other) => Number(STRONG.includes(other)) - Number(STRONG.includes(one)));
  const who = whoOf(account);
  return {
    title: "Authorize an application",
    who,
    status: problem?.status ?? 200,
    leadsOut: ROUTES[action]?.leadsOut ?? false,
    heading: "Authorize this application?",
    report: { problem },
    body: (
      <>
        <p>
          An application that calls itself{" "}
          <b>
            <bdi>{name}</bdi>
          </b>{" "}
          requests access to{" "}
          <b>
            <bdi>{who.org}</bdi>
          </b>{" "}
          on your behalf.
          {account.organizations.length > 1 ? (
            <span class="muted">
              {" "}
              To authorize it for another organization, switch to that organization in your profile first.
            </span>
          ) : null}
        </p>
        {place}
        <h2>Requested permissions</h2>
        <ul class="asks">
          {sorted.map((scope) => (
            <li key={scope}>{STRONG.includes(scope) ? <b>{SAID[scope]}</b> : SAID[scope]}</li>
          ))}
        </ul>
        <Post to={action} class="narrow" fields={isWriting ? along : { ...along, gives: "all" }}>
          {isWriting ? <Select name="gives" label="Access" options={GIVES} /> : null}
          <Field
            name="rooms"
            label="Only in these rooms"
            hint="Room names separated by spaces. Leave empty for all rooms."
            isOptional
          />
          <Select name="lasts" label="Duration" options={LASTS} />
          <p class="row">
            <Submit look="main" name="do" value="allow">
              Authorize
            </Submit>{" "}
            <Submit name="do" value="deny" formnovalidate>
              Deny
            </Submit>
          </p>
        </Post>
      </>
    ),
  };
}

function Place({ label, children }: { label: string; children: string }) {
  return (
    <>
      <p class="muted">{label}</p>
      <p class="place">{children}</p>
    </>
  );
}

/** The redirect's destination, as users judge it. */
export function BackAt({ place, isLoopback }: { place: string; isLoopback: boolean }) {
  return (
    <>
      <Place label="Redirects to">{place}</Place>
      <p class="muted">
        {isLoopback
          ? "This is a program on your computer. Continue only if you just started it yourself."
          : "Continue only if you recognize this address."}
      </p>
    </>
  );
}

/** `code` is compared with the one on the device: a link to this page may come from anyone. */
export function AsksFrom({ ip, since, code }: { ip: string | null; since: string; code: string }) {
  return (
    <>
      <Place label="Code">{code}</Place>
      <Place label="Requested from">{ip ?? "unknown"}</Place>
      <p class="muted">
        at <Moment at={since} />. Continue only if you just started it yourself and your terminal shows the code {code}.
      </p>
    </>
  );
}

export function codePage(account: AccountRecord, code: string, problem: Problem | null = null): Page {
  return {
    title: "Authorize a device",
    who: whoOf(account),
    status: problem?.status ?? 200,
    about: "Enter the code that your device or terminal shows. Do not enter a code that another person sent you.",
    report: { problem },
    body: (
      <Post to="/device" class="narrow" fields={{ step: "look" }}>
        <Field name="user_code" label="Code" value={code} hint="Eight letters." isFirst />
        <Submit look="main">Continue</Submit>
      </Post>
    ),
  };
}

export function decidedPage(account: AccountRecord, name: string, allowed: boolean): Page {
  return {
    title: allowed ? "Access granted" : "Access denied",
    who: whoOf(account),
    body: (
      <>
        <p>
          <bdi>{name}</bdi>{" "}
          {allowed ? "continues automatically. You can close this page." : "was informed that you denied access."}
        </p>
        <p>
          <a href="/account/applications">Applications</a>
        </p>
      </>
    ),
  };
}

/** `url` is the URL for MCP clients. */
export function applicationsPage(
  account: AccountRecord,
  grants: readonly GrantRecord[],
  url: string,
  report: FormReport = {},
): Page {
  const to = "/account/applications";
  const rows = grants.map((grant) => ({
    key: grant.grant_id,
    cells: {
      Application: <bdi>{grant.client_name}</bdi>,
      "Redirects to": grant.redirect_host ?? "device code",
      Organization: <bdi>{orgOf(account, grant)}</bdi>,
      Access: mayOf(grant),
      Authorized: <Moment at={grant.created_at} />,
      "Last used": <Moment at={grant.last_used_at} />,
      Expires: <Moment at={grant.expires_at} none="–" />,
      [ACTIONS]: (
        <Confirmed
          label="Revoke"
          of={grant.client_name}
          to={to}
          fields={{ grant_id: grant.grant_id }}
          does="Revoke access"
        />
      ),
    },
  }));
  return {
    title: "Applications",
    who: whoOf(account),
    at: to,
    report,
    body: (
      <>
        <h2>Authorized applications</h2>
        {rows.length > 0 ? (
          <Table classes={{ "Redirects to": "mono", [ACTIONS]: "num" }} rows={rows} />
        ) : (
          <p class="muted">
            No authorized applications. A client that connects to the URL below asks for your authorization.
          </p>
        )}
        <h2>Connect an MCP client</h2>
        <div class="prompt">
          <p class="muted">Give the client this URL. It opens a page on which you authorize it.</p>
          <pre id="mcp">{url}</pre>
          <CopyOf id="mcp" />
        </div>
      </>
    ),
  };
}

const orgOf = ({ organizations }: AccountRecord, { org_id }: GrantRecord) =>
  organizations.find((each) => each.org_id === org_id)?.name ?? org_id;

function mayOf({ scopes, room_ids }: GrantRecord): string {
  const isReading = scopes.every((scope) => (READ_SCOPES as readonly string[]).includes(scope));
  const accessLabel = isReading ? "read only" : scopes.length > 6 ? "work in rooms" : scopes.join(", ");
  return room_ids === null ? accessLabel : `${accessLabel} · ${room_ids.join(", ")}`;
}
