/** All tables with personal data: the basis of an export and of erasure. */
import type { PersonalTable } from "../db/personal.ts";
import { billingPersonal } from "../domain/billing/index.ts";
import { mailPersonal } from "../domain/mail/index.ts";
import { oauthPersonal } from "../domain/oauth/index.ts";
import { orgsPersonal } from "../domain/orgs/index.ts";
import { usersPersonal } from "../domain/users/index.ts";

export const PERSONAL: readonly PersonalTable[] = [
  ...usersPersonal,
  ...orgsPersonal,
  ...oauthPersonal,
  ...mailPersonal,
  ...billingPersonal,
];
