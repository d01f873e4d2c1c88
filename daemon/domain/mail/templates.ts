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

const IGNORE = "If you did not ask for this, ignore it: nothing has changed, and nothing will.";

const LETTERS = {
  signup: ({ url, link }: EmailFacts): Email => ({
    subject: "Finish signing up",
    text: `You asked to sign up at ${url}.\n\nFinish here, within 24 hours:\n${link}\n\n${IGNORE}`,
  }),
  request: ({ url, link }: EmailFacts): Email => ({
    subject: "Confirm your address",
    text: `You asked to sign up at ${url}.\n\nConfirm your address here, within 24 hours:\n${link}\n\nWhoever runs the service then looks at it. ${IGNORE}`,
  }),
  approved: ({ url, link }: EmailFacts): Email => ({
    subject: "You can sign up now",
    text: `You are welcome at ${url}.\n\nSign up here, within 72 hours:\n${link}`,
  }),
  known: ({ url }: EmailFacts): Email => ({
    subject: "You have an account already",
    text: `Somebody, perhaps you, asked to sign up with this address at ${url}. You have an account there: sign in at\n${url}/signin\n\nIf you have lost your way in:\n${url}/recover\n\n${IGNORE}`,
  }),
  recover: ({ url, link }: EmailFacts): Email => ({
    subject: "A new way in",
    text: `You asked for a new way into your account at ${url}.\n\nIt is good once, within 24 hours:\n${link}\n\n${IGNORE}`,
  }),
  email: ({ url, link }: EmailFacts): Email => ({
    subject: "Confirm your address",
    text: `Somebody who is signed in at ${url} would like to use this address there.\n\nIf that is you, confirm it here, within 24 hours:\n${link}\n\n${IGNORE}`,
  }),
  moved: ({ url }: EmailFacts): Email => ({
    subject: "Your address was changed",
    text: `Your account at ${url} has another address from now on, and this one gets no more of its letters.\n\nIf that was not you, tell whoever runs the service at once.`,
  }),
  invitation: ({ url, link }: EmailFacts): Email => ({
    subject: "You are invited",
    text: `A member of an organization at ${url} invites you to it.\n\nThis shows which one, and lets you in, within 72 hours:\n${link}\n\nIf you expect no invitation, ignore this.`,
  }),
  test: ({ url }: EmailFacts): Email => ({
    subject: "Mail works",
    text: `This is the mail that the operator of ${url} sent to try it.`,
  }),
} as const;

export type EmailKind = keyof typeof LETTERS;

export function renderEmail(kind: EmailKind, facts: EmailFacts): Email {
  const { subject, text } = LETTERS[kind](facts);
  return { subject: `${subject} · roomd`, text: `${text}\n` };
}
