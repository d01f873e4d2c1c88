/** Pages of sign-up and recovery. */
import type { Problem } from "../../../../shared/api/errors.ts";
import { Field, Post, Submit } from "../components/forms.tsx";
import type { Page } from "../layout.tsx";
import { type Arrival, Email, type Form, NewPassword, OrPasskey, TokenField } from "./sign-in.tsx";

interface Open {
  /** Else only by a link. */
  isForAll: boolean;
  /** Else the operator reads a note immediately. */
  sendsLetters: boolean;
}

function Note({ form }: { form: Form }) {
  return (
    <>
      <Field name="name" label="Your name" autocomplete="name" value={form.get("name")} />
      <Field
        name="note"
        label="How will you use roomd?"
        value={form.get("note")}
        hint="One sentence for the operator of this service."
        isOptional
      />
    </>
  );
}

function WithAccount() {
  return (
    <p class="muted">
      Already have an account? <a href="/signin">Sign in</a>
    </p>
  );
}

export function signUpPage(form: Form, { isForAll, sendsLetters }: Open, problem: Problem | null = null): Page {
  const about = isForAll
    ? "You get your own organization, with rooms for your agents."
    : "Use the invitation link that you received.";
  return {
    title: "Sign up",
    about,
    report: { problem },
    body: (
      <>
        {isForAll ? (
          <>
            <Post to="/signup">
              <Email
                autocomplete="email"
                value={form.get("email")}
                hint={sendsLetters ? "We will e-mail you a link." : ""}
                isFirst
              />
              {sendsLetters ? null : <Note form={form} />}
              <Submit look="main">Sign up</Submit>
            </Post>
            <h2>Have a link?</h2>
          </>
        ) : null}
        <Post to="/signup" fields={{ do: "look" }} data-token>
          <TokenField isFirst={!isForAll} />
          <Submit look={isForAll ? "plain" : "main"}>Continue</Submit>
        </Post>
        <WithAccount />
      </>
    ),
  };
}

export function signUpClosedPage(): Page {
  return {
    title: "Sign up",
    body: (
      <>
        <p>Sign-up is closed. The operator of this service or a member of an organization can invite you.</p>
        <WithAccount />
      </>
    ),
  };
}

/** Confirmation that the request is in progress. */
export function askedPage(title: string, message: string): Page {
  return {
    title,
    body: (
      <>
        <p role="status">{message}</p>
        <p>
          <a href="/signin">Sign in</a>
        </p>
      </>
    ),
  };
}

/** After verification of the address, the user introduces themselves to the operator. */
export function notePage(form: Form, email: string | null, problem: Problem | null = null): Page {
  return {
    title: "Sign up",
    about:
      email === null ? null : (
        <>
          <bdi>{email}</bdi> is verified. Introduce yourself to the operator of this service.
        </>
      ),
    report: { problem },
    body: (
      <Post to="/signup" fields={{ do: "ask", token: form.get("token") ?? "" }}>
        <Note form={form} />
        <Submit look="main">Request access</Submit>
      </Post>
    ),
  };
}

/**
 * An admitted user enters the organization's name and chooses how to sign in. `isClaimed`: an account of this service has the address
 * unverified.
 */
export function welcomePage(
  form: Form,
  { email, isClaimed }: { email: string; isClaimed: boolean },
  arrival: Arrival,
  problem: Problem | null = null,
): Page {
  const token = form.get("token") ?? "";
  return {
    title: "Sign up",
    about: (
      <>
        You will sign in as <bdi>{email}</bdi>.
      </>
    ),
    report: { problem },
    body: (
      <>
        {isClaimed ? (
          <p class="trouble">
            An existing account uses this address but has not verified it. If the account is yours,{" "}
            <a href="/signin">sign in</a> instead: once you sign up, that account loses the address.
          </p>
        ) : null}
        <Post to="/signup" fields={{ do: "done", token, email }}>
          <Field
            name="org_name"
            label="Name of your organization"
            value={form.get("org_name")}
            hint="Your team or company. Members can see this name."
            isFirst
          />
          <Field name="name" label="Your name" autocomplete="name" value={form.get("name")} />
          <NewPassword />
          <Submit look="main">Sign up</Submit>
          <OrPasskey arrival={arrival} path={`/signup#${token}`} />
        </Post>
      </>
    ),
  };
}

export function recoverPage(form: Form, isOn: boolean, problem: Problem | null = null): Page {
  return {
    title: "Reset your access",
    report: { problem },
    body: (
      <>
        {isOn ? (
          <Post to="/recover">
            <Email value={form.get("email")} hint="An address that you verified on this service." isFirst />
            <Submit look="main">Send me a link</Submit>
          </Post>
        ) : (
          <p>
            This service sends no e-mail. Its operator can print a link on the host: <code>roomd user link EMAIL</code>.
          </p>
        )}
        <p>
          <a href="/signin">Sign in</a>
        </p>
      </>
    ),
  };
}
