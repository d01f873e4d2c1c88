/** Rules for a person's address, name and password, for all inputs. */

import type { FieldError } from "../../../shared/api/errors.ts";
import { PASSWORD_LENGTH } from "../../../shared/api/people/account.ts";
import { email as emailType, personName } from "../../../shared/api/people/members.ts";
import { ServiceError } from "../../core/service-error.ts";
import COMMON from "./sign-in/common-passwords.txt" with { type: "text" };

const EMAIL = new RegExp(emailType.pattern);
const NAME = new RegExp(personName.pattern);
const common = new Set(COMMON.split("\n"));

/** Normalized for storage: addresses are case-insensitive. */
export const addressOf = (email: string): string => email.trim().toLowerCase();

/** Reports all errors of the given fields together. Throws validation_failed. */
export function requirePerson({ email, name, password }: { email?: string; name?: string; password?: string }): void {
  const errors: FieldError[] = [];
  if (email !== undefined && (email.length > emailType.maxLength || !EMAIL.test(email))) {
    errors.push({ field: "email", code: "pattern", message: "is not an e-mail address" });
  }
  if (name !== undefined && (name.length === 0 || name.length > personName.maxLength || !NAME.test(name))) {
    const message = `must have 1 to ${personName.maxLength} characters, without invisible ones`;
    errors.push({ field: "name", code: "pattern", message });
  }
  const { minLength: min, maxLength: max } = PASSWORD_LENGTH;
  if (password !== undefined && (password.length < min || password.length > max)) {
    errors.push({ field: "password", code: "length", message: `must have ${min} to ${max} characters`, min, max });
  }
  if (password !== undefined && common.has(password.toLowerCase())) {
    errors.push({ field: "password", code: "too_common", message: "is too common: choose another" });
  }
  if (errors.length > 0) throw new ServiceError("validation_failed", { errors });
}

/** Checks a line of user input. Throws validation_failed. */
export function requireText(field: string, text: string, most: number, least = 1): void {
  if (text.length >= least && text.length <= most && NAME.test(text)) return;
  const message = `must have ${least} to ${most} characters, without invisible ones`;
  throw new ServiceError("validation_failed", { errors: [{ field, code: "pattern", message }] });
}
