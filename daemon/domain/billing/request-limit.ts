/** Rate limit of repeated requests to the payment service: its own limit is shared by all organizations. */

import { LRUCache } from "lru-cache";
import { Allowance } from "../../host/guest-link/pace.ts";

/** Rate of one request; above it, the last result is returned. */
const PER_SECOND = 1;
const AT_ONCE = 5;
const MAX_KEPT = 1_000;

interface Question {
  allowance: Allowance;
  /** The last result, or the request in progress. */
  answer: Promise<boolean> | null;
  isUnderWay: boolean;
  /** Once true, it stays true. */
  isTrue: boolean;
}

export class CheckoutQuestions {
  readonly #questions = new LRUCache<string, Question>({ max: MAX_KEPT });

  /** Result of `ask`; concurrent calls share one request. */
  async once(name: string, ask: () => Promise<boolean>): Promise<boolean> {
    const question = this.#questionOf(name);
    if (question.isTrue) return true;
    const isAllowed = !question.isUnderWay && question.allowance.take();
    if (question.answer === null || isAllowed) question.answer = this.#ask(question, ask);
    return await question.answer;
  }

  async #ask(question: Question, ask: () => Promise<boolean>): Promise<boolean> {
    question.isUnderWay = true;
    try {
      question.isTrue = await ask();
      return question.isTrue;
    } catch (error) {
      question.answer = null;
      throw error;
    } finally {
      question.isUnderWay = false;
    }
  }

  #questionOf(name: string): Question {
    const allowance = new Allowance(PER_SECOND, AT_ONCE);
    const question = this.#questions.get(name) ?? { allowance, answer: null, isUnderWay: false, isTrue: false };
    this.#questions.set(name, question);
    return question;
  }
}
