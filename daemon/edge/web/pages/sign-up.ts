/** Pages of sign-up and recovery. */
import type { Problem } from "../../../../shared/api/errors.ts";
import { html, type Markup } from "../../../core/markup.ts";
import { field, hidden, type Page, trouble } from "../layout.ts";
import { type Arrival, BRAND, type Form, LONG_ENOUGH, orPasskey } from "./sign-in.ts";

interface Open {
  /** Else only by a link. */
  isForAll: boolean;
  /** Else the operator reads a note immediately. */
  sendsLetters: boolean;
}

const note = (form: Form): Markup =>
  html`${field("name", "Your name", { autocomplete: "name", value: form.get("name") })}${field("note", "How will you use roomd?", { value: form.get("note"), hint: "One sentence for the operator of this service.", isOptional: true })}`;

/** A token behind the # is submitted by the browser's script immediately. */
const byLink = (isFirst: boolean): Markup =>
  html`<form method="post" action="/signup" data-token>${hidden([["do", "look"]])}
${field("token", "Code after the # in your link", { isFirst })}<button class="button${isFirst ? " main" : ""}">Continue</button></form>`;

export function signUpPage(form: Form, { isForAll, sendsLetters }: Open, problem: Problem | null = null): Page {
  const ask = html`<form method="post" action="/signup">
${field("email", "E-mail", { type: "email", autocomplete: "email", value: form.get("email"), isFirst: true, hint: sendsLetters ? "We will e-mail you a link." : "" })}${sendsLetters ? "" : note(form)}
<button class="button main">Sign up</button></form><h2>Have a link?</h2>`;
  return {
    title: "Sign up",
    body: html`${BRAND}<h1>Sign up</h1><p class="muted">${isForAll ? "You get your own organization, with rooms for your agents." : "Use the invitation link that you received."}</p>${trouble(problem)}${isForAll ? ask : ""}${byLink(!isForAll)}<p class="muted">Already have an account? <a href="/signin">Sign in</a></p>`,
  };
}

export function signUpClosedPage(): Page {
  return {
    title: "Sign up",
    body: html`${BRAND}<h1>Sign up</h1><p>Sign-up is closed. The operator of this service or a member of an organization can invite you.</p><p class="muted">Already have an account? <a href="/signin">Sign in</a></p>`,
  };
}

/** Confirmation that the request is in progress. */
export function askedPage(title: string, message: string): Page {
  return {
    title,
    body: html`${BRAND}<h1>${title}</h1><p role="status">${message}</p><p><a href="/signin">Sign in</a></p>`,
  };
}

/** After verification of the address, the user introduces themselves to the operator. */
export function notePage(form: Form, email: string | null, problem: Problem | null = null): Page {
  const verifiedNote =
    email === null
      ? ""
      : html`<p class="muted"><bdi>${email}</bdi> is verified. Introduce yourself to the operator of this service.</p>`;
  return {
    title: "Sign up",
    body: html`${BRAND}<h1>Sign up</h1>${verifiedNote}${trouble(problem)}<form method="post" action="/signup">${hidden([
      ["do", "ask"],
      ["token", form.get("token") ?? ""],
    ])}${note(form)}<button class="button main">Request access</button></form>`,
  };
}

/** An admitted user enters the organization's name and chooses how to sign in. */
/** `isClaimed`: an account here has the address unverified. */
export function welcomePage(
  form: Form,
  { email, isClaimed }: { email: string; isClaimed: boolean },
  arrival: Arrival,
  problem: Problem | null = null,
): Page {
  const claimed = isClaimed
    ? html`<p class="trouble">An existing account uses this address but has not verified it. If the account is yours, <a href="/signin">sign in</a> instead: once you sign up, that account loses the address.</p>`
    : "";
  const token = form.get("token") ?? "";
  return {
    title: "Sign up",
    body: html`${BRAND}<h1>Sign up</h1><p class="muted">You will sign in as <bdi>${email}</bdi>.</p>${claimed}${trouble(problem)}<form method="post" action="/signup">${hidden(
      [
        ["do", "done"],
        ["token", token],
        ["email", email],
      ],
    )}
${field("org_name", "Name of your organization", { value: form.get("org_name"), hint: "Your team or company. Members can see this name.", isFirst: true })}
${field("name", "Your name", { autocomplete: "name", value: form.get("name") })}
${field("password", "Password", { type: "password", autocomplete: "new-password", hint: LONG_ENOUGH })}
<button class="button main">Sign up</button>${orPasskey(arrival, `/signup#${token}`)}</form>`,
  };
}

export function recoverPage(form: Form, isOn: boolean, problem: Problem | null = null): Page {
  const how = isOn
    ? html`<form method="post" action="/recover">${field("email", "E-mail", { type: "email", autocomplete: "username", value: form.get("email"), isFirst: true, hint: "An address that you verified on this service." })}<button class="button main">Send me a link</button></form>`
    : html`<p>This service sends no e-mail. Its operator can print a link on the host: <code>roomd user link EMAIL</code>.</p>`;
  return {
    title: "Reset your access",
    body: html`${BRAND}<h1>Reset your access</h1><br>${trouble(problem)}${how}<p><a href="/signin">Sign in</a></p>`,
  };
}
