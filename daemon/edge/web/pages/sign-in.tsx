/** Pages for anonymous visitors: signing in, and single-use links. */

import type { Problem } from "../../../../shared/api/errors.ts";
import { PASSWORD_LENGTH } from "../../../../shared/api/people/account.ts";
import type { UserId } from "../../../../shared/ids.ts";
import { Field, type FieldProps, Hidden, Post, Submit } from "../components/forms.tsx";
import type { Page } from "../layout.tsx";
import type { SignInOption } from "../sign-in-options.ts";
import { PasskeyButton } from "./passkey-button.tsx";

export type Form = ReadonlyMap<string, string>;

/** The page after returning from an identity provider: the browser's script submits it immediately. */
export function returnPage(answer: URLSearchParams): Page {
  const along = ANSWERED.flatMap((name) => answer.getAll(name).map((value) => [name, value] as const));
  return {
    title: "Signing in",
    body: (
      <Post to="/signin/return" data-go={answer.has("state") || undefined}>
        <Hidden fields={along} />
        <Submit look="main">Continue</Submit>
      </Post>
    ),
  };
}
/** Parameters that an issuer adds to the redirect. */
const ANSWERED = ["code", "state", "iss", "error", "error_description"];

/** A token behind the # is entered by the browser's script. */
export function TokenField({ value, isFirst }: { value?: string | undefined; isFirst: boolean }) {
  return <Field name="token" label="Code after the # in your link" value={value} isFirst={isFirst} />;
}

type EmailProps = Pick<FieldProps, "value" | "hint" | "isFirst" | "autocomplete">;

export function Email(field: EmailProps) {
  return <Field name="email" label="E-mail" type="email" autocomplete="username" {...field} />;
}

export function NewPassword({ isFirst = false }: { isFirst?: boolean }) {
  return (
    <Field
      name="password"
      label="Password"
      type="password"
      autocomplete="new-password"
      hint={`${PASSWORD_LENGTH.minLength} characters or more.`}
      isFirst={isFirst}
    />
  );
}

/** Passkey options for a user who arrives by a link. */
export interface Arrival {
  user_id: UserId;
  offer: SignInOption | null;
}

export function OrPasskey({ arrival: { user_id, offer }, path }: { arrival: Arrival; path: string }) {
  return offer ? (
    <>
      {"options" in offer ? <Hidden fields={[["user_id", user_id]]} /> : null}
      <PasskeyButton offer={offer} does="make" label="Use a passkey instead" path={path} />
    </>
  ) : null;
}

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
  const email = form.get("email");
  return {
    leadsOut: elsewhere !== null,
    title: "Sign in",
    report: { problem },
    body: (
      <>
        <Post to="/signin">
          <Email value={email} isFirst={!email} />
          <Field
            name="password"
            label="Password"
            type="password"
            autocomplete="current-password"
            isFirst={form.has("email")}
          />
          <Submit look="main">Sign in</Submit>
        </Post>
        {offer ? (
          <Post to="/signin" fields={{ do: "passkey" }}>
            <PasskeyButton offer={offer} does="use" label="Sign in with a passkey" />
          </Post>
        ) : null}
        {elsewhere === null ? null : (
          <Post to="/signin" class="passkey" fields={{ do: "elsewhere" }}>
            <Submit>Sign in with {elsewhere}</Submit>
          </Post>
        )}
        <p class="muted">
          {mayRecover ? (
            <a href="/recover">Forgot your password?</a>
          ) : (
            <>
              Locked out? On the host, <code>roomd user link EMAIL</code> prints a new link.
            </>
          )}
          {maySignUp ? (
            <>
              {" "}
              · <a href="/signup">Sign up</a>
            </>
          ) : null}
        </p>
      </>
    ),
  };
}

/** Target of a link with a token. */
export function linkPage(form: Form, problem: Problem | null = null): Page {
  return {
    title: "Your link",
    report: { problem },
    body: (
      <Post to="/setup" data-token>
        <TokenField value={form.get("token")} isFirst />
        <Submit look="main">Continue</Submit>
      </Post>
    ),
  };
}

/** For a signed-in user who opens an e-mail's link. */
export function verifyPage(form: Form): Page {
  return {
    title: "Verify your address",
    body: (
      <Post to="/verify" data-token>
        <TokenField value={form.get("token")} isFirst />
        <Submit look="main">Verify address</Submit>
      </Post>
    ),
  };
}

/** For the setup of the service, and for recovery by a link. */
export function setupPage(kind: "setup" | "user", form: Form, arrival: Arrival, problem: Problem | null = null): Page {
  const isNew = kind === "setup";
  const [title, about, does] = isNew
    ? ["Set up roomd", "You become the owner of the first organization.", "Set up"]
    : ["Set a new password", "All your other sessions will be signed out.", "Set password"];
  const token = form.get("token") ?? "";
  const isDeclined = form.has("token") && form.has("step") && !form.has("only");
  return {
    title,
    about,
    report: { problem },
    body: (
      <Post to="/setup" fields={{ token, step: "done" }}>
        {isNew ? <Person form={form} /> : null}
        <NewPassword isFirst={!isNew} />
        {isNew ? null : (
          <label class="choice">
            <input type="checkbox" name="only" value="yes" checked={!isDeclined} /> Also revoke my applications, and
            remove my current passkeys and linked accounts. Leave this checked if another person may have had access.
          </label>
        )}
        <Submit look="main">{does}</Submit>
        <OrPasskey arrival={arrival} path={`/setup#${token}`} />
      </Post>
    ),
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
  { org, role, signedInAs, isForOne }: Invited,
  form: Form,
  arrival: Arrival,
  problem: Problem | null = null,
): Page {
  const path = `/invite/${token}`;
  const about = `You are invited as ${/^[aeiou]/.test(role) ? "an" : "a"} ${role}. If you already have an account, enter its name, e-mail and password.${isForOne ? " The link works for one address only." : ""}`;
  return {
    title: `Join ${org}`,
    heading: (
      <>
        Join <bdi>{org}</bdi>
      </>
    ),
    about,
    report: { problem },
    body: (
      <>
        {signedInAs ? (
          <>
            <Post to={path} fields={{ as: "me" }}>
              <Submit look="main">
                Join as <bdi>{signedInAs}</bdi>
              </Submit>
            </Post>
            <h2>Or join with another account</h2>
          </>
        ) : null}
        <Post to={path}>
          <Person form={form} />
          <NewPassword />
          <Submit look="main">Join</Submit>
          <OrPasskey arrival={arrival} path={path} />
        </Post>
      </>
    ),
  };
}

/** Shown if browsers would send a password unencrypted. */
export function plainPage(host: string): Page {
  return {
    title: "TLS required",
    status: 403,
    body: (
      <>
        <p>
          The connection to <b>{host}</b> is not encrypted, so passwords are not accepted.
        </p>
        <p class="muted">
          The operator of this service can set <code>tls.mode</code>, or set <code>http.base_url</code> to the{" "}
          <code>https://</code> address of a proxy.
        </p>
      </>
    ),
  };
}

export function deadEnd(title: string, problem: Problem, back = "/signin"): Page {
  return {
    title,
    status: problem.status,
    report: { problem },
    body: (
      <p>
        <a href={back}>{back === "/signin" ? "Sign in" : "Back"}</a>
      </p>
    ),
  };
}

function Person({ form }: { form: Form }) {
  return (
    <>
      <Field name="name" label="Your name" autocomplete="name" value={form.get("name")} isFirst />
      <Email value={form.get("email")} hint="You will sign in with this address." />
    </>
  );
}
