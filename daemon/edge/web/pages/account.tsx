/** Pages of the account: the profile, API keys, sessions. */

import type { Problem } from "../../../../shared/api/errors.ts";
import type { KeyRecord } from "../../../../shared/api/orgs.ts";
import type { AccountRecord, SessionRecord } from "../../../../shared/api/people/account.ts";
import type { UsageReport } from "../../../../shared/api/usage.ts";
import { Moment, Properties } from "../../../web/components/static.tsx";
import { ACTIONS, Table } from "../../../web/components/table.tsx";
import { Confirmed, CopyOf, Field, Hidden, Post, Select, Submit } from "../components/forms.tsx";
import type { FormReport, Page, SignedInUser } from "../layout.tsx";
import { type ListPage, More } from "../list-page.tsx";
import { ROUTES } from "../routes.ts";
import type { SignInOption } from "../sign-in-options.ts";
import { PasskeyButton } from "./passkey-button.tsx";

/** Form fields that prove the user's identity. */
const PROOFS: readonly string[] = ["proof", "proof_passkey"];

export const whoOf = ({ name, org_id, organizations, role }: AccountRecord): SignedInUser => ({
  name,
  isKeeper: role === "owner" || role === "admin",
  org: organizations.find((each) => each.org_id === org_id)?.name ?? "",
});

interface ShownProfile {
  /** Whether the service sends e-mails. */
  hasMail: boolean;
  /** Null: this user may not see it. */
  usage: UsageReport | null;
}

/** Summary of the organization's resources and usage. */
function InShort({ usage: { plan, sandboxes, totals, credits } }: { usage: UsageReport }) {
  const left = credits.remaining?.toLocaleString("en", { maximumFractionDigits: 3 }) ?? "no limit";
  const hours = (totals.sandbox_seconds / 3600).toFixed(1);
  return (
    <>
      <h2>Usage</h2>
      <Properties
        of={{
          Plan: plan,
          "Credits left": left,
          "Active sandboxes": sandboxes.active,
          "This month": `${hours} sandbox hours`,
        }}
      />
      <p>
        <a href="/billing">Credits and usage</a>
      </p>
    </>
  );
}

function NewAddress({ account: { email, email_verified } }: { account: AccountRecord }) {
  const [label, value, hint] = email_verified
    ? ["New address", "", "We will e-mail a confirmation link to it."]
    : [
        "Your address",
        email,
        "Not verified yet: we will e-mail a link to it. A verified address can be used to reset your access.",
      ];
  return (
    <>
      <h2>E-mail</h2>
      <Post to="/account" class="narrow" fields={{ do: "email" }}>
        <Field name="email" type="email" autocomplete="email" {...{ label, value, hint }} />
        <Submit>Send the link</Submit>
      </Post>
    </>
  );
}

export function profilePage(account: AccountRecord, { hasMail, usage }: ShownProfile, report: FormReport = {}): Page {
  const { email, email_verified, name, role, organizations, org_id, user_id } = account;
  const who = whoOf(account);
  const others = organizations.filter((each) => each.org_id !== org_id);
  return {
    title: "Account",
    who,
    at: "/account",
    report,
    body: (
      <>
        <Properties
          of={{
            "E-mail": (
              <>
                {email} {email_verified ? <span class="muted">verified</span> : null}
              </>
            ),
            Organization: (
              <>
                <bdi>{who.org}</bdi> <span class="muted">as {role}</span>
              </>
            ),
            Id: <span class="mono">{user_id}</span>,
          }}
        />
        <Post to="/account" class="narrow" fields={{ do: "name" }}>
          <Field name="name" label="Name" value={name} autocomplete="name" />
          <Submit look="main">Save</Submit>
        </Post>
        {usage ? <InShort usage={usage} /> : null}
        {hasMail ? <NewAddress account={account} /> : null}
        {others.length > 0 ? (
          <>
            <h2>Switch organization</h2>
            <Post to="/account" class="row narrow" fields={{ do: "org" }}>
              <Select
                name="org_id"
                label="Organization"
                options={others.map((each) => [each.org_id, `${each.name} (${each.role})`])}
              />
              <Submit>Switch</Submit>
            </Post>
          </>
        ) : null}
        <h2>Your data</h2>
        <p>
          <a href="/account/data">View your data, or delete this account</a>
        </p>
      </>
    ),
  };
}

/** A newly created key, which is shown only once. */
export interface NewKey {
  url: string;
  key: string;
  name: string;
}

export function KeyShown({ of: { url, key, name } }: { of: NewKey }) {
  return (
    <div class="prompt">
      <p>
        <b>Your new key</b> <bdi>{name}</bdi> <span class="muted">Copy it now. It will not be shown again.</span>
      </p>
      <pre id="exports">{`export ROOMD_URL=${url}\nexport ROOMD_API_KEY=${key}`}</pre>
      <CopyOf id="exports" label="Copy both lines" look="main" />
    </div>
  );
}

export const ENDS: readonly (readonly [string, string])[] = [
  ["", "Never"],
  ["604800", "In 7 days"],
  ["2592000", "In 30 days"],
  ["7776000", "In 90 days"],
  ["31536000", "In a year"],
];
export const MAY: readonly (readonly [string, string])[] = [
  ["all", "Full access (same as my role)"],
  ["read", "Read only"],
];

/** Rooms of a key that the list names. */
const MAX_ROOMS = 3;

interface ShownKeys {
  keys: ListPage<KeyRecord>;
  /** The members' names by their IDs. */
  names: ReadonlyMap<string, string>;
  made: NewKey | null;
  /** ID of the next form, so that it is accepted once. */
  once: string;
}

export function keysPage(
  account: AccountRecord,
  { keys, names, made, once }: ShownKeys,
  report: FormReport = {},
): Page {
  const { typed } = report;
  const rows = keys.items.map((key) => {
    const { key_id, name, created_by } = key;
    const form = (action: string) => ({
      to: "/account/keys",
      fields: { do: action, key_id, once: `${once}-${key_id}` },
    });
    return {
      key: key_id,
      cells: {
        Name: <bdi>{name}</bdi>,
        Key: `${key.key_prefix}…`,
        Access: mayOf(key),
        "Created by": (
          <bdi>{names.get(created_by.id) ?? (created_by.type === "operator" ? "the operator" : created_by.id)}</bdi>
        ),
        "Last used": <Moment at={key.last_used_at} />,
        Expires: <Moment at={key.expires_at} none="–" />,
        [ACTIONS]: (
          <>
            <Post {...form("rotate")}>
              <Submit look="link" aria-label={`Rotate ${name}`}>
                Rotate
              </Submit>
            </Post>
            <Confirmed
              label="Revoke"
              of={name}
              does="Revoke permanently"
              name={`Revoke permanently ${name}`}
              {...form("revoke")}
            />
          </>
        ),
      },
    };
  });
  return {
    title: "API keys",
    who: whoOf(account),
    at: "/account/keys",
    report,
    body: (
      <>
        {made ? <KeyShown of={made} /> : null}
        <h2>Keys</h2>
        {rows.length > 0 ? (
          <Table classes={{ Key: "mono", [ACTIONS]: "num" }} rows={rows} />
        ) : (
          <p class="muted">No active API keys in this list. Programs and MCP clients use a key to connect.</p>
        )}
        <More at="/account/keys" list="keys" after={keys.next_cursor} />
        {account.role === "viewer" ? (
          <p class="muted">Viewers cannot create API keys. An owner or admin can change your role.</p>
        ) : (
          <>
            <h2>Create a key</h2>
            <Post to="/account/keys" class="row" fields={{ do: "make", once }}>
              <Field name="name" label="Name" value={typed?.get("name")} />
              <Select name="may" label="Access" options={MAY} chosen={typed?.get("may")} />
              <Select name="ends" label="Expires" options={ENDS} chosen={typed?.get("ends")} />
              <Submit look="main">Create key</Submit>
            </Post>
          </>
        )}
      </>
    ),
  };
}

function mayOf({ scopes, room_ids }: KeyRecord): string {
  const writes = scopes.filter((scope) => !scope.endsWith(":read"));
  const accessLabel = scopes.includes("org:admin")
    ? "full access"
    : writes.length === 0
      ? "read only"
      : scopes.length > 8
        ? "full member access"
        : scopes.join(", ");
  if (room_ids === null) return accessLabel;
  const more = room_ids.length - MAX_ROOMS;
  return `${accessLabel} · ${room_ids.slice(0, MAX_ROOMS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

export function sessionsPage(
  account: AccountRecord,
  sessions: readonly SessionRecord[],
  report: FormReport = {},
): Page {
  const to = "/account/sessions";
  const rows = sessions.map(({ session_id, user_agent, ip, created_at, seen_at, is_this }) => ({
    key: session_id,
    cells: {
      Device: browserOf(user_agent),
      "IP address": ip ?? "–",
      "Signed in": <Moment at={created_at} />,
      "Last seen": <Moment at={seen_at} />,
      [ACTIONS]: is_this ? (
        <span class="muted">this session</span>
      ) : (
        <Confirmed
          label="Sign out"
          of={`the session of ${browserOf(user_agent)}`}
          to={to}
          fields={{ session_id }}
          does="Sign out this session"
        />
      ),
    },
  }));
  return {
    title: "Sessions",
    who: whoOf(account),
    at: to,
    report,
    body: (
      <>
        <Table classes={{ "IP address": "mono", [ACTIONS]: "num" }} rows={rows} />
        {sessions.length > 1 ? (
          <Post to={to} fields={{ session_id: "others" }}>
            <Submit>Sign out all other sessions</Submit>
          </Post>
        ) : null}
      </>
    ),
  };
}

/** As people call it. */
function browserOf(agent: string | null): string {
  const name = /Edg|OPR|Firefox|Chrom(?:e|ium)|Safari|curl/.exec(agent ?? "")?.[0] ?? "Other client";
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux/.exec(agent ?? "")?.[0];
  const browser = { Edg: "Edge", OPR: "Opera", Chromium: "Chrome" }[name] ?? name;
  return system ? `${browser} on ${system}` : browser;
}

/** Important actions require the password or passkey again; the original form is sent along. */
export function proofPage(
  account: AccountRecord,
  path: string,
  form: ReadonlyMap<string, string>,
  problem: Problem | null,
  offer: SignInOption | null,
): Page {
  const along = <Hidden fields={[...form].filter(([name]) => !PROOFS.includes(name))} />;
  return {
    title: "Confirm it is you",
    status: 403,
    leadsOut: ROUTES[path]?.leadsOut ?? form.get("do") === "link",
    who: whoOf(account),
    about: "For security, confirm your identity. This is valid for 10 minutes.",
    report: { problem },
    body: (
      <>
        {account.has_password ? (
          <Post to={path} class="narrow">
            {along}
            <Field name="proof" label="Password" type="password" autocomplete="current-password" isFirst />
            <Submit look="main">Continue</Submit>
          </Post>
        ) : null}
        {offer ? (
          <Post to={path} class="narrow">
            {along}
            <PasskeyButton
              offer={offer}
              does="use"
              label="Use a passkey"
              as="proof_passkey"
              isMain={!account.has_password}
            />
          </Post>
        ) : null}
      </>
    ),
  };
}
