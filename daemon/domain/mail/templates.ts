/** Plain-text e-mails to people. They contain no text that a stranger has chosen except the recipient's address. */

/** Values to fill into an e-mail. */
export interface EmailFacts {
  /** URL of the web application, without a trailing slash. */
  url: string;
  /** The link in the e-mail; "" if it has no link. */
  link: string;
}

export interface Email {
  subject: string;
  text: string;
}

const IGNORE = "If you did not request this, ignore this e-mail: nothing has changed, and nothing will.";

const LETTERS = {
  signup: ({ url, link }: EmailFacts): Email => ({
    subject: "Finish signing up",
    text: `You requested to sign up at ${url}.\n\nFinish your sign-up within 24 hours:\n${link}\n\n${IGNORE}`,
  }),
  request: ({ url, link }: EmailFacts): Email => ({
    subject: "Confirm your address",
    text: `You requested to sign up at ${url}.\n\nConfirm your address within 24 hours:\n${link}\n\nThe operator of the service will then review your request. ${IGNORE}`,
  }),
  approved: ({ url, link }: EmailFacts): Email => ({
    subject: "You can sign up now",
    text: `Your request to sign up at ${url} was approved.\n\nSign up within 72 hours:\n${link}`,
  }),
  known: ({ url }: EmailFacts): Email => ({
    subject: "You already have an account",
    text: `A sign-up with this address was requested at ${url}, perhaps by you. You already have an account there. Sign in at\n${url}/signin\n\nIf you cannot sign in, reset your access:\n${url}/recover\n\n${IGNORE}`,
  }),
  recover: ({ url, link }: EmailFacts): Email => ({
    subject: "Reset your access",
    text: `You requested to reset the access to your account at ${url}.\n\nThis link works once, within 24 hours:\n${link}\n\n${IGNORE}`,
  }),
  email: ({ url, link }: EmailFacts): Email => ({
    subject: "Confirm your address",
    text: `An account at ${url} requested to use this address.\n\nIf the account is yours, confirm the address within 24 hours:\n${link}\n\n${IGNORE}`,
  }),
  moved: ({ url }: EmailFacts): Email => ({
    subject: "Your address was changed",
    text: `The e-mail address of your account at ${url} was changed. This address receives no more e-mails about it.\n\nIf you did not change it, contact the operator of the service immediately.`,
  }),
  invitation: ({ url, link }: EmailFacts): Email => ({
    subject: "You are invited",
    text: `A member of an organization at ${url} invites you to join it.\n\nView and accept the invitation within 72 hours:\n${link}\n\nIf you do not expect an invitation, ignore this e-mail.`,
  }),
  test: ({ url }: EmailFacts): Email => ({
    subject: "Test e-mail",
    text: `The operator of ${url} sent this e-mail to test the mail server.`,
  }),
} as const;

export type EmailKind = keyof typeof LETTERS;

export function renderEmail(kind: EmailKind, facts: EmailFacts): Email {
  const { subject, text } = LETTERS[kind](facts);
  return { subject: `${subject} · roomd`, text: `${text}\n` };
}
