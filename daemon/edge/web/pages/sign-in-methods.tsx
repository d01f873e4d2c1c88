/** Page of a user's sign-in methods. */
import { type AccountRecord, PASSWORD_LENGTH } from "../../../../shared/api/people/account.ts";
import type { IdentityRecord } from "../../../../shared/api/people/identities.ts";
import type { PasskeyRecord } from "../../../../shared/api/people/passkeys.ts";
import { Moment } from "../../../web/components/static.tsx";
import { ACTIONS, Table } from "../../../web/components/table.tsx";
import { Confirmed, Field, Post, Submit } from "../components/forms.tsx";
import type { FormReport, Page } from "../layout.tsx";
import type { SignInOption } from "../sign-in-options.ts";
import { whoOf } from "./account.tsx";
import { PasskeyButton } from "./passkey-button.tsx";

const PATH = "/account/ways";
const CLASSES = { [ACTIONS]: "num" };

export interface ShownWays {
  passkeys: readonly PasskeyRecord[];
  /** To create another; null: not requested. */
  offer: SignInOption | null;
  identities: readonly IdentityRecord[];
  /** Name of the identity provider; null: none is configured. */
  elsewhere: string | null;
}

function AddPasskey({ offer }: { offer: SignInOption | null }) {
  return offer ? (
    <Post to={PATH} class="narrow" fields={{ do: "add" }}>
      <Field name="name" label="Name of the new passkey" hint="To recognize it later, for example “laptop”." isFirst />
      <PasskeyButton offer={offer} does="make" label="Create passkey" isMain />
      <noscript>
        <p class="muted">Passkeys need JavaScript, which is disabled in your browser.</p>
      </noscript>
    </Post>
  ) : (
    <Post to={PATH} fields={{ do: "begin" }}>
      <Submit look="main">Add a passkey</Submit>
    </Post>
  );
}

export function waysPage(
  account: AccountRecord,
  { passkeys, offer, identities, elsewhere }: ShownWays,
  report: FormReport = {},
): Page {
  const rows = passkeys.map(({ passkey_id, name, is_usable, rp_id, is_synced, created_at, last_used_at }) => ({
    key: passkey_id,
    cells: {
      Name: (
        <>
          <bdi>{name}</bdi> {is_usable ? null : <span class="muted">not usable here: created for {rp_id}</span>}
        </>
      ),
      Storage: is_synced ? "synced" : "one device only",
      Created: <Moment at={created_at} />,
      "Last used": <Moment at={last_used_at} />,
      [ACTIONS]: (
        <Confirmed label="Remove" of={name} to={PATH} fields={{ do: "remove", passkey_id }} does="Remove permanently" />
      ),
    },
  }));
  const linked = identities.map(({ identity_id, label, is_usable, created_at, last_used_at }) => ({
    key: identity_id,
    cells: {
      Account: (
        <>
          <bdi>{label}</bdi> {is_usable ? null : <span class="muted">provider no longer configured</span>}
        </>
      ),
      Linked: <Moment at={created_at} />,
      "Last used": <Moment at={last_used_at} />,
      [ACTIONS]: (
        <Confirmed label="Unlink" of={label} to={PATH} fields={{ do: "unlink", identity_id }} does="Unlink account" />
      ),
    },
  }));
  return {
    title: "Sign-in methods",
    leadsOut: elsewhere !== null,
    who: whoOf(account),
    at: PATH,
    report,
    body: (
      <>
        <h2>Passkeys</h2>
        <p class="muted">Sign in with your fingerprint, face or device PIN. A passkey cannot be guessed or phished.</p>
        {rows.length > 0 ? <Table classes={CLASSES} rows={rows} /> : null}
        <AddPasskey offer={offer} />
        <h2>Password</h2>
        {account.has_password ? null : <p class="muted">No password set.</p>}
        <Post to={PATH} class="narrow" fields={{ do: "password" }}>
          <Field
            name="password"
            label={account.has_password ? "New password" : "Password"}
            type="password"
            autocomplete="new-password"
            hint={`${PASSWORD_LENGTH.minLength} characters or more. All your other sessions will be signed out.`}
          />
          <Submit>Set password</Submit>
        </Post>
        {linked.length > 0 || elsewhere !== null ? <h2>Linked accounts</h2> : null}
        {linked.length > 0 ? <Table classes={CLASSES} rows={linked} /> : null}
        {elsewhere === null ? null : (
          <Post to={PATH} fields={{ do: "link" }}>
            <Submit>Link an account from {elsewhere}</Submit>
          </Post>
        )}
      </>
    ),
  };
}
