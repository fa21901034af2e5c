//! Patterns in Chinese, in simplified characters.

use super::Sign::{Exfiltration, Hiding, Override, Role, Secrets};
use super::pattern::{Class, Written};

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    // Whoever does it, where it is told and not ordered; what turns it round.
    ("ZWHO", "我 我们 他 她 他们 她们 它 它们 大家 人 有人 客户 老板 孩子 学生 员工 同事 别人 会 常 经常 总是 容易 为什么 可以 不 没有 没 不会 不能 并 曾 曾经 不要 别 不得 切勿 请勿 \
        勿 禁止 严禁"),
    ("ZNOT", "不要 别 不能 不得 切勿 禁止 请勿 勿 严禁 谨防 防止 避免 以免 会 可能 被 导致 已 担心 怕 无法 不会 不 没有 没 我 我们 他 她 他们 如何 怎么 怎样 任何人 千万别"),
    ("ZOPENS", "请 只 从现在起 从现在开始 以后 你 您 必须 不要 回复 输出 说 回答 永远 一律 始终 务必 然后 并且 把 将 立即 忽略 无视 告诉 今后"),

    // Disregarding.
    ("ZIGNORE", "忽略 忽略掉 无视 忘记 忘掉 忽视 抛弃 抛开 丢弃 绕过 跳过 违反 推翻 覆盖 清除 不要遵守 不要遵循 不要理会 不要管 别管 不再遵守 不再遵循 不用遵守 不必遵守 无需遵守 停止遵守 \
        停止遵循 不用管 不要执行 不要听从 不必理会 无需理会 放弃 不要再遵守"),
    ("ZEARLIER", "以上 上面 上述 之前 此前 先前 前面 前述 早先 原先 原来 以前 刚才 上文"),
    ("ZALL", "所有 全部 一切 任何 你的 您的 系统 开发者 原有 既有 初始 默认 内置 安全 全体"),
    ("ZFILL", "的 地 掉 这些 那些 给 给你 对 收到 收到的 被 告知 设定的 设置的 给出的 到 过 中 里 内 对话 我 用户 任何 关于 你 您 关键 其他 其它 和 与 及 以及 有关"),
    ("ZTOLD", "指令 指示 提示词 提示 命令 设定 准则 系统提示 系统提示词 系统指令 系统消息 安全策略 安全限制 安全准则 人设 指引 守则"),
    ("ZSYSTEM", "系统提示 系统提示词 系统指令 系统消息 安全策略 安全限制 安全准则"),
    ("ZRULES", "规则 限制 约束 规定 要求 训练 说明 政策 原则 禁令"),
    ("ZEVERYTHING", "内容 对话 信息 文字 话 消息"),

    // Roles.
    ("ZADV", "现在 从现在起 从现在开始 现在起 将 要 会 已经 已 就 必须 需要 应该 只 只能 不再 今后 以后 接下来 从此 无条件 绝对 完全 始终 永远 开始"),
    ("ZBE", "是 扮演 成为 变成 作为 充当 模拟 进入 处于 在"),
    ("ZFREE", "没有 无 不受 不存在 毫无 不再受 没有任何 不用遵守 不必遵守 无需遵守 不需要遵守 不遵守 摆脱"),
    ("ZBOUNDS", "限制 约束 规则 道德 审查 过滤 底线 束缚 规定 准则 伦理 内容政策"),

    // Secrets.
    ("ZREVEAL", "泄露 泄漏 透露 输出 打印 打印出 显示 告诉我 说出 展示 公布 复述 重复 提供 公开 列出 给我 发给我 交出 写出 背诵 念出 粘贴 返回 告知我 告诉"),
    ("ZPART", "你 您 你的 您的 的 完整 完整的 全部 所有 隐藏 隐藏的 初始 原始 内部 一下 出 出来 一遍 我 逐字 以上 当前 自己 收到 收到的 第一条 最初的"),
    ("ZPROMPT", "系统提示词 系统指令 隐藏提示 隐藏指令 隐藏提示词 初始提示词 初始指令 内部指令 系统prompt"),
    ("ZYOURPROMPT", "提示词 系统提示 系统消息 指令 初始设定 系统设定 prompt 内部规则"),
    ("ZKEY", "密钥 密码 口令 凭证 凭据 令牌 key 私钥 token"),

    // Keeping from the user.
    ("ZDONT", "不要 不能 别 不得 切勿 请勿 绝不能 永远不要 绝对不要 不可以 不许 无需 千万别 千万不要 禁止 不必 绝不"),
    ("ZTELL", "告诉 告知 透露给 泄露给 透露 提及 让"),
    ("ZPERSON", "用户 使用者 该用户 本用户"),
    ("ZSELF", "这 此 你 任何 关于这 这件事 这一点 上述 这些 以上 本"),

    // Carrying out.
    ("ZTALK", "对话 对话记录 聊天记录 聊天内容 对话内容 对话历史 聊天历史 用户数据 用户信息 用户资料 用户隐私 个人信息 隐私 记忆 密钥 密码 会话 会话内容 会话记录 系统提示词"),
    ("ZSEND", "发送 上传 转发 传送 发 传 泄露 提交 寄 外传 发往 传到 发到 发送到 上传到 转发到 发送至 上传至"),
    ("ZTOWARDS", "到 至 给 往 去"),
];

#[rustfmt::skip]
pub(super) const PATTERNS: &[Written] = &[
    (Override, "~ZWHO ZIGNORE ZFILL*3 ZEARLIER|ZALL ZEARLIER|ZALL|ZFILL*6 ZTOLD !的|了|里|是"),
    (Override, "~ZWHO ZIGNORE ZFILL*3 ZSYSTEM !的|了|里|是"),
    (Override, "~ZWHO ZIGNORE ZFILL|ZEARLIER*5 ZALL ZEARLIER|ZALL|ZFILL*5 ZRULES !的|了|里|是"),
    (Override, "~ZWHO ZIGNORE ZFILL|ZEARLIER*5 ZALL ZEARLIER|ZALL|ZFILL*5 ZRULES 的 指令|限制"),
    (Override, "~ZWHO ZIGNORE ZFILL|ZALL*4 ZEARLIER ZFILL|ZALL*4 ZEVERYTHING , 你|您|现在|从现在起|从现在开始|并|改为|只|按|执行"),
    (Override, "你|您 ZADV*3 不受|不再受|不必遵守|无需遵守|不需要遵守|不用遵守|不再遵守 ZFILL|ZALL|ZEARLIER*5 ZTOLD|ZBOUNDS !的"),
    (Override, "你|您|你的|您的 新 的? 系统? 指令|系统提示词|指示 是|如下|为"),
    (Override, "新 的? 系统提示词|系统指令 $"),

    (Role, "你|您 ZADV*3 ZBE _*12 ZFREE ZFILL|ZALL*3 _*4 ZBOUNDS"),
    (Role, "你|您 ZADV*3 ZFREE ZFILL|ZALL*3 审查|道德|束缚|伦理|内容政策"),
    (Role, "你|您 ZADV*3 ZBE _*3 dan"),
    (Role, "你|您 ZADV*3 ZBE _*3 开发者模式|越狱模式|上帝模式|管理员模式|无限制模式|调试模式"),
    (Role, "你|您 ZADV*3 不再是 _*3 ai|人工智能|语言模型|助手|聊天机器人|chatgpt|claude|gpt"),
    (Role, "你|您 ZADV*4 服从|听从 我 !的"),
    (Role, "你|您 ZADV*4 服从|听从 我 的 ZALL*2 命令|指令|指挥|指示|要求|话"),
    (Role, "你|您 ZADV*4 服从|听从 一切|所有"),
    (Role, "~关于 越狱模式|无限制模式"),

    (Secrets, "~ZNOT ZREVEAL ZPART*6 ZPROMPT !的|怎么|如何"),
    (Secrets, "~ZNOT ZREVEAL ZPART*3 你的|您的|你|您 ZPART*4 ZPROMPT|ZYOURPROMPT"),
    (Secrets, "把|将 ZPART*5 ZPROMPT _*3 ZREVEAL"),
    (Secrets, "把|将 你的|您的|你|您 ZPART*4 ZYOURPROMPT _*3 ZREVEAL|发"),
    (Secrets, "~ZNOT ZREVEAL ZPART*3 你的|您的|用户的 ZPART*2 api|系统|登录? ZKEY"),
    (Secrets, "~ZNOT ZREVEAL ZPART*4 api 密钥|key"),
    (Secrets, "~ZNOT 重复|复述|输出|打印 ZPART*2 以上|上面|上述 的? 所有|全部 的? 内容|文字|指令|话"),
    (Secrets, "把 ZEARLIER 的? 所有|全部? 的? 内容|文字|指令|话 原样|逐字|完整|全部*2 地? 输出|重复|打印|复述|返回"),
    (Secrets, "你的|您的 系统提示词|初始指令|隐藏指令 是 什么|啥"),

    (Hiding, "ZDONT ZTELL 给? ZPERSON $"),
    (Hiding, "ZDONT ZTELL 给? ZPERSON 关于? ZSELF"),
    (Hiding, "ZDONT 让 ZPERSON 知道|发现|看到|察觉|注意到 $"),
    (Hiding, "ZDONT 让 ZPERSON 知道|发现|看到|察觉|注意到 ZSELF"),
    (Hiding, "ZDONT 把|将|对|向 ZSELF _*6 ZTELL|说|提起|提及 给? ZPERSON"),
    (Hiding, "ZDONT 对|向|跟|和 ZPERSON 说|提起|提及|透露|泄露 ZSELF"),
    (Hiding, "ZDONT 对|向|跟|和 ZPERSON 说|提起|提及|透露|泄露 $"),
    (Hiding, "瞒着|瞒住 ZPERSON"),
    (Hiding, "这|此|以上|本|上述 _*6 对|向 ZPERSON 保密|隐瞒"),

    (Exfiltration, "把|将 _*5 ZTALK ZFILL*3 _*3 ZSEND ZTOWARDS? _*6 , WEB"),
    (Exfiltration, "~ZNOT ZSEND _*4 ZTALK _*4 ZTOWARDS _*6 , WEB"),
];
