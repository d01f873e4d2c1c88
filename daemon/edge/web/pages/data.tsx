/** Page of personal data: the stored data as JSON, and deletion of the account. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { CopyOf, Field, Post, Submit } from "../components/forms.tsx";
import type { FormReport, Page } from "../layout.tsx";
import type { LongText } from "../long-text.ts";
import { whoOf } from "./account.tsx";

/** `kept`: the personal data as JSON; null: not requested. */
export function dataPage(account: AccountRecord, kept: LongText | null, report: FormReport = {}): Page {
  return {
    title: "Your data",
    who: whoOf(account),
    at: "/account",
    report,
    body: (
      <>
        <h2>Your data</h2>
        <p class="muted">
          Your actions are recorded in the audits of your organizations under your user ID. Passwords and keys are
          stored only as hashes, and are not shown.
        </p>
        {kept === null ? (
          <Post to="/account/data" fields={{ do: "export" }}>
            <Submit>Show my data</Submit>
          </Post>
        ) : (
          <div class="prompt">
            <pre id="kept" {...kept} />
            <CopyOf id="kept" look="main" />
          </div>
        )}
        <h2>Delete this account</h2>
        <p>
          This cannot be undone. You leave every organization, your keys are revoked, your sessions are signed out, and
          all your data is deleted. Audit records remain for their retention period, with your user ID only.
        </p>
        <Post to="/account/data" class="narrow" fields={{ do: "forget" }}>
          <Field name="email" label="Your e-mail" type="email" hint={`Type ${account.email} to confirm.`} />
          <Submit look="bad">Delete my account</Submit>
        </Post>
      </>
    ),
  };
}
