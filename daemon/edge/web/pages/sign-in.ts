/** Pages for anonymous visitors: signing in, and single-use links. */

import type { Problem } from "../../../../shared/api/errors.ts";
import { PASSWORD_LENGTH } from "../../../../shared/api/people/account.ts";
import type { UserId } from "../../../../shared/ids.ts";
import { html, Markup } from "../../../core/markup.ts";
import { field, hidden, type Page, trouble } from "../layout.ts";
import type { SignInOption } from "../sign-in-options.ts";
import { passkeyButton } from "./passkey-button.ts";

export const BRAND = html`<p class="brand">roomd</p>`;
export const LONG_ENOUGH = `${PASSWORD_LENGTH.minLength} characters or more.`;

export type Form = ReadonlyMap<string, string>;

/** The page after returning from an identity provider: the browser's script submits it immediately. */
export function returnPage(answer: URLSearchParams): Page {
  const along = ANSWERED.flatMap((name) => answer.getAll(name).map((value) => [name, value] as const));
  return {
    title: "Signing in",
    body: html`${BRAND}<h1>Signing in</h1><br><form method="post" action="/signin/return"${answer.has("state") ? new Markup(" data-go") : ""}>${hidden(along)}<button class="button main">Continue</button></form>`,
  };
}
/** Parameters that an issuer adds to the redirect. */
const ANSWERED = ["code", "state", "iss", "error", "error_description"];

/** Passkey options for a user who arrives by a link. */
export interface Arrival {
  user_id: UserId;
  offer: SignInOption | null;
}

export const orPasskey = ({ user_id, offer }: Arrival, path: string): Markup | string =>
  offer
    ? html`${"options" in offer ? hidden([["user_id", user_id]]) : ""}${passkeyButton(offer, { does: "make", label: "Use a passkey instead", path })}`
    : "";

/** Ways in besides the password. */
interface OtherWays {
  offer: SignInOption | null;
  /** Name of the identity provider; null: none is configured. */
  elsewhere: string | null;
  /** Whether an e-mail can restore access. */
  mayRecover: boolean;
  /** Whether sign-up without an invitation is possible. */
  maySignUp: boolean;
}

export function signInPage(form: Form, ways: OtherWays, problem: Problem | null = null): Page {
  const { offer, elsewhere, mayRecover, maySignUp } = ways;
  const lost = mayRecover
    ? html`<a href="/recover">Forgot your password?</a>`
    : html`Locked out? On the host, <code>roomd user link EMAIL</code> prints a new link.`;
  return {
    leadsOut: elsewhere !== null,
    title: "Sign in",
    body: html`${BRAND}<h1>Sign in</h1><br>${trouble(problem)}<form method="post" action="/signin">
${field("email", "E-mail", { type: "email", autocomplete: "username", value: form.get("email"), isFirst: !form.get("email") })}
${field("password", "Password", { type: "password", autocomplete: "current-password", isFirst: form.has("email") })}
<button class="button main">Sign in</button></form>
${offer ? html`<form method="post" action="/signin">${hidden([["do", "passkey"]])}${passkeyButton(offer, { does: "use", label: "Sign in with a passkey" })}</form>` : ""}${elsewhere === null ? "" : html`<form method="post" action="/signin" class="passkey">${hidden([["do", "elsewhere"]])}<button class="button">Sign in with ${elsewhere}</button></form>`}<p class="muted">${lost}${maySignUp ? html` · <a href="/signup">Sign up</a>` : ""}</p>`,
  };
}

/** Target of a link with a token: the token is behind the #, and the browser's script enters it here. */
export function linkPage(form: Form, problem: Problem | null = null): Page {
  return {
    title: "Your link",
    body: html`${BRAND}<h1>Your link</h1><br>${trouble(problem)}<form method="post" action="/setup" data-token>
${field("token", "Code after the # in your link", { value: form.get("token"), isFirst: true })}
<button class="button main">Continue</button></form>`,
  };
}

/** For a signed-in user who opens an e-mail's link. */
export function verifyPage(form: Form): Page {
  return {
    title: "Verify your address",
    body: html`${BRAND}<h1>Verify your address</h1><br><form method="post" action="/verify" data-token>
${field("token", "Code after the # in your link", { value: form.get("token"), isFirst: true })}
<button class="button main">Verify address</button></form>`,
  };
}

/** For the setup of the service, and for recovery by a link. */
export function setupPage(kind: "setup" | "user", form: Form, arrival: Arrival, problem: Problem | null = null): Page {
  const isNew = kind === "setup";
  const title = isNew ? "Set up roomd" : "Set a new password";
  const description = isNew
    ? "You become the owner of the first organization."
    : "All your other sessions will be signed out.";
  const only = isNew
    ? ""
    : html`<label class="choice"><input type="checkbox" name="only" value="yes"${form.has("token") && form.has("step") && !form.has("only") ? "" : html` checked`}> Also revoke my applications, and remove my current passkeys and linked accounts. Leave this checked if another person may have had access.</label>`;
  return {
    title,
    body: html`${BRAND}<h1>${title}</h1><p class="muted">${description}</p>${trouble(problem)}<form method="post" action="/setup">
${hidden([
  ["token", form.get("token") ?? ""],
  ["step", "done"],
])}${isNew ? person(form) : ""}
${field("password", "Password", { type: "password", autocomplete: "new-password", hint: LONG_ENOUGH, isFirst: !isNew })}${only}
<button class="button main">${isNew ? "Set up" : "Set password"}</button>${orPasskey(arrival, `/setup#${form.get("token") ?? ""}`)}</form>`,
  };
}

export interface Invited {
  org: string;
  role: string;
  /** The signed-in user, who may accept it. */
  signedInAs: string | null;
  /** Whether only one address may accept it. The address is not shown: anyone with the link reads this. */
  isForOne: boolean;
}

export function invitePage(
  token: string,
  invited: Invited,
  form: Form,
  arrival: Arrival,
  problem: Problem | null = null,
): Page {
  const { org, role, signedInAs, isForOne } = invited;
  const join = signedInAs
    ? html`<form method="post" action="/invite/${token}">${hidden([["as", "me"]])}<button class="button main">Join as <bdi>${signedInAs}</bdi></button></form><h2>Or join with another account</h2>`
    : "";
  return {
    title: `Join ${org}`,
    body: html`${BRAND}<h1>Join <bdi>${org}</bdi></h1><p class="muted">You are invited as ${/^[aeiou]/.test(role) ? "an" : "a"} ${role}. If you already have an account, enter its name, e-mail and password.${isForOne ? " The link works for one address only." : ""}</p>${trouble(problem)}${join}<form method="post" action="/invite/${token}">
${person(form)}
${field("password", "Password", { type: "password", autocomplete: "new-password", hint: LONG_ENOUGH })}
<button class="button main">Join</button>${orPasskey(arrival, `/invite/${token}`)}</form>`,
  };
}

/** Shown if browsers would send a password unencrypted. */
export function plainPage(host: string): Page {
  return {
    title: "TLS required",
    status: 403,
    body: html`${BRAND}<h1>TLS required</h1><p>The connection to <b>${host}</b> is not encrypted, so passwords are not accepted.</p><p class="muted">The operator of this service can set <code>tls.mode</code>, or set <code>http.base_url</code> to the <code>https://</code> address of a proxy.</p>`,
  };
}

export function deadEnd(title: string, problem: Problem, back = "/signin"): Page {
  return {
    title,
    status: problem.status,
    body: html`${BRAND}<h1>${title}</h1><br>${trouble(problem)}<p><a href="${back}">${back === "/signin" ? "Sign in" : "Back"}</a></p>`,
  };
}

const person = (
  form: Form,
) => html`${field("name", "Your name", { autocomplete: "name", value: form.get("name"), isFirst: true })}
${field("email", "E-mail", { type: "email", autocomplete: "username", value: form.get("email"), hint: "You will sign in with this address." })}`;
