//! Patterns in English.

use super::Sign::{Exfiltration, Hiding, Override, Role, Secrets};
use super::pattern::{Class, Written};

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    // Where an order stands.
    ("LEAD", "please now just also first instead must should shall will would can could to need have want wants kindly immediately simply always totally completely \
        hereby do is are going required supposed obliged instructed remember be secretly silently quietly permission allowed permitted \
        authorized authorised free able asked told"),
    ("JOINING", "and then or but so"),
    ("ORDERED", "you youll youd ai assistant model chatbot bot llm gpt chatgpt claude agent youre"),
    ("TELLING", "it the a an my our his her their its this that these those there some many most if when because since while"),
    ("DOING", "i we they he she people users everyone nobody im ive weve theyve who"),
    ("FIRM", "do dont never"),
    ("OPENS", "reply respond answer say output print send write tell always never do dont instead you your only make begin start act pretend treat recommend follow execute \
        run call forward insert append use ignore disregard forget include add repeat reveal show give from whenever obey confirm transfer pay delete"),

    // Disregarding.
    ("IGNORE", "ignore disregard forget bypass override overrule discard neglect abandon unlearn violate disobey circumvent"),
    ("FILL", "all any every each of the these those this that you your such other and or entirely whatever both whole entire set given i gave provided written future following subsequent later"),
    ("EARLIER", "previous previously prior above preceding earlier foregoing aforementioned"),
    ("KIND", "system safety security user developer hidden chat model content ethical ethics written initial original existing current default prior core internal own usage moral \
        secret old openai anthropic preset programmed built in custom operating"),
    ("MODELS", "system developer hidden safety ethical openai anthropic preprogrammed"),
    ("TOLD", "instruction instructions prompt prompts guideline guidelines directive directives programming"),
    ("RULES", "rule rules policy policies direction directions command commands constraint constraints restriction restrictions training guardrails safeguards limitations filters"),
    // What the instructions would be of, if they are not the model's.
    ("SCOPED", "of in on for about from regarding concerning by at when"),
    ("WAS", "you i was were has have had been is are that it said written came comes ve weve"),
    ("FOLLOW", "follow obey respect comply adhere honor honour observe heed"),

    // Roles.
    ("ARE", "are re will be become act now as a an the to must have can no longer just going henceforth acting behaving playing role of"),
    ("ODD", "unrestricted unfiltered uncensored unbound jailbroken amoral unethical evil rogue lawless unaligned limitless"),
    ("MACHINE", "ai assistant model chatbot bot system gpt llm agent version mode character persona entity being machine chatgpt claude dan intelligence program computer"),
    ("BOUNDS", "rule rules restriction restrictions limitation limitations limits filter filters guideline guidelines ethics morals constraint constraints censorship safeguards guardrails \
        boundaries policies policy morality"),
    ("FREE", "without no zero free lacking ignoring"),
    ("MODE", "developer debug god admin administrator sudo root maintenance jailbreak jailbroken unrestricted dan opposite"),

    // Secrets.
    ("REVEAL", "reveal print show output display repeat tell give dump leak disclose expose share write recite paste return echo list send state summarize summarise translate encode \
        extract spell reproduce copy exfiltrate"),
    ("PARTS", "me us the your full entire complete exact whole all of out verbatim contents content text above hidden secret original initial actual current own internal confidential \
        first word for back any every please everything in to exactly literally raw"),
    ("YOURS", "your all every stored users hidden"),
    ("ABOUT", "of for about on in from template editor section example examples tab page file when to"),
    ("KEY", "key keys token tokens credential credentials secret secrets"),
    ("PAPER", "policy policies documentation docs doc section page field format length manager rotation template example examples design guide settings form reset strategy rules"),

    // Keeping from the user.
    ("TELL", "tell inform mention disclose admit reveal"),
    ("THIS", "this that it these any anything of to the a your about thing things single instructions instruction with"),
    ("USER", "user users human humans operator"),
    ("SELF", "this it these you any anything what that"),
    ("ACT", "send forward post upload email transmit delete transfer buy purchase pay execute run change add include insert append call download install share leak copy remove"),

    // Carrying out.
    ("SEND", "send forward post upload transmit exfiltrate leak email submit report append deliver pass relay copy"),
    ("OFTHE", "the this that all any every our entire whole full users user their his her your private personal sensitive confidential contents content of complete copy a summary current \
        previous and conversation chat"),
    ("TALK", "conversation conversations chat chats history transcript transcripts memory memories prompt secrets credentials passwords cookies"),
    ("TOWARDS", "to at via into using with in as and history log logs transcript contents data"),
    ("WEB", "http https www ftp @ hxxp webhook url"),
];

#[rustfmt::skip]
pub(super) const PATTERNS: &[Written] = &[
    (Override, "^ IGNORE FILL*5 EARLIER FILL*3 KIND*2 TOLD|RULES !SCOPED"),
    (Override, "^ IGNORE FILL*5 EARLIER FILL*3 KIND*2 TOLD|RULES in|of|from|about|by the|this|your|our? conversation|chat|prompt|session|context|system|developer|above|safety|security|ethics|content"),
    (Override, "^ IGNORE FILL*3 TOLD|RULES FILL*3 above|before|earlier|previously"),
    (Override, "^ IGNORE FILL*4 your KIND*3 TOLD|RULES !SCOPED"),
    (Override, "^ IGNORE FILL*4 MODELS KIND*2 TOLD|RULES !of|in|on|from|by"),
    (Override, "^ IGNORE all|any|every FILL*3 KIND*2 TOLD|RULES !SCOPED"),
    (Override, "^ IGNORE all|any FILL*3 EARLIER context|messages|text|content|input"),
    (Override, "^ IGNORE everything|anything|whatever FILL*2 WAS*3 above|before|prior|previously|earlier|preceding $"),
    (Override, "^ IGNORE everything|anything|whatever FILL*2 WAS*3 above|before|prior|previously|earlier|preceding this|that|and|now|you|line|point|instead"),
    (Override, "^ IGNORE everything|anything|all|whatever that? you|youve were|was|have|had|been|ve|are*3 told|taught|instructed|trained|programmed !about"),
    (Override, "^ IGNORE what you were|have|had|been*2 told|taught|instructed earlier|before|previously|above"),
    (Override, "^ IGNORE the|all|everything*2 above|previous , and|instead instead|tell|say|output|print|reply|respond|answer|write|do"),
    (Override, "your|all EARLIER KIND*2 TOLD are|is now? void|cancelled|canceled|revoked|overridden"),
    (Override, "your|all EARLIER KIND*2 TOLD no longer apply"),
    (Override, "^ do not|no|never FOLLOW your|the developer|developers|creators|makers|operators"),
    (Override, "^ dont|never|stop|cease|quit FOLLOW|following|obeying with|to? FILL*4 EARLIER|your|MODELS FILL*2 KIND*3 TOLD|RULES !SCOPED"),
    (Override, "^ do not|no longer? FOLLOW with|to? FILL*4 EARLIER|your|MODELS FILL*2 KIND*3 TOLD|RULES !SCOPED"),
    (Override, "you are|re|do|will|should|must|need*1 not|no|never|dont|neednt longer|have|need|to|be|required|obliged*4 FOLLOW with|to? FILL*4 EARLIER|your|MODELS|any FILL*2 KIND*3 TOLD|RULES !SCOPED"),
    (Override, "override|overrides|supersede|supersedes|overrule|overrules|outrank|outranks|precedence FILL*2 over? FILL*4 EARLIER|MODELS|your FILL*2 KIND*2 instruction|instructions|prompt|prompts|directives|programming !SCOPED"),
    (Override, "your new|real|actual|true|updated|only KIND*1 instruction|instructions|directive|directives|programming|prompt is|are|follow"),
    (Override, "your new|real|actual|true|updated|only KIND*1 instruction|instructions|directive|directives|programming|prompt $"),
    (Override, "new|updated|revised|real system prompt|instructions $"),

    (Role, "you ARE*4 ODD*2 dan $"),
    (Role, "you ARE*4 dan|jailbroken|uncensored|unfiltered"),
    (Role, "you ARE*5 ODD ODD? _*2 MACHINE"),
    (Role, "you are|re|become now ODD"),
    (Role, "act|behave|respond|answer|reply|roleplay|pretend|simulate|speak|operate|function as|like|to|be|you|are|re|if|that|an|a|the*5 ODD"),
    (Role, "act|behave|respond|answer|reply|roleplay|pretend|simulate|speak|operate|function as|like|to|be|you|are|re|if|that|an|a|the*5 dan !would|does|did"),
    (Role, "you will|must|should|shall? are|re|be|become|act ARE*4 _*3 MACHINE _*4 FREE FILL*3 KIND*2 BOUNDS"),
    (Role, "act|pretend|roleplay|simulate|imagine|behave|respond|answer|reply|speak|operate as|like|to|be|you|are|re|if|that|an|a|the|being*6 _*2 MACHINE _*4 FREE FILL*3 KIND*2 BOUNDS"),
    (Role, "act|behave|respond|answer|reply|speak|operate|output as|if|there|were|are|had|you|with|have|everything|to|me|all|questions*5 FREE FILL*2 KIND*1 ethical|safety|moral|content|any|ethics KIND*2 BOUNDS|ethics"),
    (Role, "you now? have|are|re|got no|zero|without FILL*2 KIND*2 rules|restrictions|filters|guidelines|ethics|censorship|limitations $"),
    (Role, "you are|re|will not|no|be|longer|never|now*3 bound|restricted|limited|constrained|governed|bounded by FILL*4 KIND*3 BOUNDS|TOLD|openai|anthropic|terms"),
    (Role, "you are|re no longer an|a? chatgpt|claude|gpt|gemini|ai|assistant|bot|bound"),
    (Role, "you _*4 do anything now $"),
    (Role, "dan|jailbreak mode"),
    (Role, "do anything now mode|dan"),
    (Role, "you ARE*3 in|into|enter|entering FILL*1 MODE mode"),
    (Role, "MODE mode is? enabled|activated|engaged|unlocked , you|respond|answer|reply|all|from"),
    (Role, "^ enter|enable|activate|switch FILL*1 to|into? god|jailbreak|dan|unrestricted|sudo mode"),
    (Role, "you must|will|shall|should|have|always|only|now|to|only*4 obey me|my|us|every|whatever"),

    (Secrets, "^ REVEAL PARTS*6 system prompt|prompts !ABOUT"),
    (Secrets, "^ REVEAL PARTS*6 system prompt|prompts in a|code|full|json|base64"),
    (Secrets, "^ REVEAL PARTS*5 your PARTS*3 KIND*2 system|developer message|instruction|instructions|configuration !ABOUT"),
    (Secrets, "^ REVEAL PARTS*4 your PARTS*3 KIND*2 prompt|instructions|programming|guidelines|directives !ABOUT"),
    (Secrets, "^ REVEAL PARTS*5 hidden|secret|internal|initial|original|confidential KIND*1 prompt|prompts|instructions|directives !ABOUT"),
    (Secrets, "what|whats are|is|was|were|s? your PARTS*2 system|initial|original|hidden|secret|internal|exact prompt|instructions|directives"),
    (Secrets, "^ REVEAL PARTS*5 YOURS PARTS*3 api|access|secret|private|auth|authentication|admin KEY !PAPER"),
    (Secrets, "^ REVEAL PARTS*5 YOURS PARTS*3 password|passwords|credentials|secrets|passphrase|passphrases !PAPER"),
    (Secrets, "^ reveal|leak|dump|exfiltrate|disclose|print|output|expose PARTS*5 api|access|secret|private KEY !PAPER"),
    (Secrets, "^ print|show|display|echo everything above|preceding !in|into"),
    (Secrets, "^ repeat|output|recite|reproduce PARTS*4 everything|words|text|message|contents|sentences|instructions above|preceding !in|into"),

    (Hiding, "^ dont|never TELL THIS*4 USER $"),
    (Hiding, "^ do|must|should|shall|may not|never TELL THIS*4 USER $"),
    (Hiding, "^ dont|never TELL THIS*4 USER about|of? SELF !is|was|the|a|an|their"),
    (Hiding, "^ do|must|should|shall|may not|never TELL THIS*4 USER about|of? SELF !is|was|the|a|an|their"),
    (Hiding, "^ dont|never mention|reveal|disclose|show THIS*3 to the USER $"),
    (Hiding, "^ do not|never mention|reveal|disclose|show THIS*3 to the USER $"),
    (Hiding, "^ dont|never let THIS*2 USER know|notice|see|find|suspect|realize|realise $"),
    (Hiding, "^ dont|never let THIS*2 USER know|notice|see|find|suspect|realize|realise out? about|of|that? SELF"),
    (Hiding, "^ do|must|should|shall|may|will not|never let THIS*2 USER know|notice|see|find|suspect|realize|realise $"),
    (Hiding, "^ do|must|should|shall|may|will not|never let THIS*2 USER know|notice|see|find|suspect|realize|realise out? about|of|that? SELF"),
    (Hiding, "^ keep|hide|conceal this|it|that|these THIS*2 secret|hidden|concealed? from THIS*2 USER"),
    (Hiding, "^ ACT _*12 without telling|informing|notifying|alerting|asking THIS*2 USER"),
    (Hiding, "^ ACT|do|make|perform _*12 without THIS*2 USER knowing|noticing|realizing|realising"),
    (Hiding, "USER must|should|may|can|will never|not ever? know|notice|suspect about|of? SELF"),
    (Hiding, "USER must never|not ever? know|notice|suspect $"),

    (Exfiltration, "^ SEND OFTHE*6 TALK TALK*2 TOWARDS|WEB _*8 WEB"),
    (Exfiltration, "^ SEND OFTHE*6 TALK TALK*2 _*4 TOWARDS , WEB"),
    (Exfiltration, "^ SEND OFTHE*6 users|user|personal|private|sensitive|confidential|your data|information|details|info|messages TALK*2 TOWARDS|WEB _*8 WEB"),
    (Exfiltration, "^ SEND _*3 what|everything|anything the USER _*8 to _*4 WEB"),
    (Exfiltration, "^ append|attach|concatenate|encode OFTHE|all*3 message|messages|question|input|name|TALK to|into|in _*4 WEB|link|query"),
    (Exfiltration, "^ include|add|append|insert|render|output|display|embed _*4 image|img|picture|link _*8 url|query|parameter|parameters|src _*4 TALK"),
    (Exfiltration, "^ include|add|append|insert|put|encode OFTHE*4 TALK _*5 image|img|url|link|query|parameter|parameters"),
];
