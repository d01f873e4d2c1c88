/** Frame of every web page, and the parts that only account pages have. */
import type { ComponentChildren } from "preact";
import type { Problem } from "../../../shared/api/errors.ts";
import { spelled } from "../../../shared/api/spelling.ts";
import type { Boot } from "../../../shared/hub/boot.ts";
import BASE from "../../web/base.css" with { type: "text" };
import { Alert, Done, Links, Tabs } from "../../web/components/static.tsx";
import { documentText, raw } from "../../web/document.tsx";
import TOKENS from "../../web/tokens.css" with { type: "text" };
import { Post, Submit } from "./components/forms.tsx";
import { HUB_PROGRAM, HUB_STYLE } from "./hub-files.ts";
import SCRIPT from "./page.browser.js" with { type: "text" };

export { SCRIPT };
export const STYLE = TOKENS + BASE;

/** The signed-in user, as the rail shows it. */
export interface SignedInUser {
  name: string;
  org: string;
  /** Whether the user is an owner or admin of the organization. */
  isKeeper: boolean;
}

/** The rejection of a form. */
export interface FormReport {
  problem?: Problem | null | undefined;
  /** The fields of a rejected form, which the page shows again. */
  typed?: ReadonlyMap<string, string>;
}

export interface Page {
  title: string;
  /** Default: the title. */
  heading?: ComponentChildren;
  /** A sentence below the heading. */
  about?: ComponentChildren;
  /** The path of the page's entry in the navigation rail or in the account's tabs. */
  at?: string;
  who?: SignedInUser | null;
  report?: FormReport;
  body: ComponentChildren;
  status?: number;
  /** The response to its form redirects the browser elsewhere. */
  leadsOut?: boolean;
  /** It runs the hub: its boot data, and the nonce of styles added later. */
  hub?: { boot: Boot; nonce: string };
}

const TABS: readonly (readonly [path: string, name: string])[] = [
  ["/account", "Profile"],
  ["/account/ways", "Sign-in methods"],
  ["/account/keys", "API keys"],
  ["/account/applications", "Applications"],
  ["/account/sessions", "Sessions"],
  ["/org/members", "Members"],
  ["/billing", "Billing"],
];

const HOSTS = "Hosts";
const RAIL: readonly (readonly [path: string, name: string])[] = [
  ["/", "Home"],
  ["/rooms", "Rooms"],
  ["/audit", "Audit"],
  ["/usage", "Usage"],
  ["/hosts", HOSTS],
  ["/prompts", "Prompts"],
  ["/docs", "API"],
];

function Rail({ who, at, hasHosts }: { who: SignedInUser; at: string | undefined; hasHosts: boolean }) {
  const entries = RAIL.filter(([, name]) => name !== HOSTS || (hasHosts && who.isKeeper));
  const isAccount = at === undefined || TABS.some(([path]) => path === at);
  return (
    <nav class="rail" aria-label="roomd">
      <span class="brand">roomd</span>
      <Links to={entries} at={at} />
      <div class="foot">
        <a href="/account" aria-current={isAccount ? "page" : undefined}>
          <bdi>{who.name}</bdi> · <bdi>{who.org}</bdi>
        </a>
        <Post to="/signout">
          <Submit look="link">Sign out</Submit>
        </Post>
      </div>
    </nav>
  );
}

function Main({ title, heading = title, about, at = "", who, report, body }: Page) {
  const isTab = TABS.some(([path]) => path === at);
  return (
    <>
      {who ? null : <p class="brand">roomd</p>}
      <h1>{isTab ? "Account" : heading}</h1>
      {isTab ? <Tabs tabs={TABS} at={at} label="Account" /> : null}
      {about ? <p class="muted">{about}</p> : null}
      <Trouble of={report?.problem} />
      {body}
    </>
  );
}

/**
 * `notice` is the result of the previous form, as a sentence; `hasHosts`: whether the service has several hosts; `colours`: light or dark.
 */
export function render(
  page: Page,
  notice: string | null = null,
  { hasHosts = false, colours = null }: { hasHosts?: boolean; colours?: string | null } = {},
): string {
  const { title, at, who, body, hub } = page;
  return documentText({
    title: `${title} · roomd`,
    colours,
    head: (
      <>
        <link rel="icon" href="data:," />
        {hub ? <link rel="stylesheet" href={HUB_STYLE} /> : <style {...raw(STYLE)} />}
      </>
    ),
    body: (
      <body class={who ? "inside" : "outside"}>
        <a class="skip" href="#main">
          Skip to content
        </a>
        {who ? <Rail who={who} at={at} hasHosts={hasHosts} /> : null}
        <main id="main" tabindex={-1}>
          <Done>{notice}</Done>
          {hub ? body : <Main {...page} />}
        </main>
        <p class="said" role="status" aria-live="polite" />
        {hub ? (
          <>
            <script type="application/json" id="boot" {...raw(inScript(hub.boot))} />
            <script type="module" src={HUB_PROGRAM} />
          </>
        ) : (
          <script {...raw(SCRIPT)} />
        )}
      </body>
    ),
  });
}

/** JSON in which no text can close the script element. */
const inScript = (value: object) => JSON.stringify(value).replaceAll("<", "\\u003c");

/** `name must have …` → `Name must have …`; a message without the field's name gets it as a prefix. */
function sentence(field: string, message: string): string {
  const text = message.startsWith(`${field} `) ? message : `${field} ${message}`;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replaceAll("_", " ");
}

/** The error, with the next step for the user. */
export function Trouble({ of }: { of: Problem | null | undefined }) {
  if (!of) return null;
  const { errors, code, detail, hint } = of;
  const isOfFields = errors.length > 0 && code === "validation_failed";
  const text = isOfFields ? "Correct the marked fields and send the form again" : detail;
  return (
    <Alert text={/[.!?]$/.test(text) ? text : `${text}.`} hint={hint && spelled(hint, { kind: "http" })}>
      {errors.length > 0 ? (
        <ul>
          {/* A script moves each message to its field. */}
          {errors.map(({ field, message }) => (
            <li key={field} data-field={field}>
              {sentence(field, message)}
            </li>
          ))}
        </ul>
      ) : null}
    </Alert>
  );
}
